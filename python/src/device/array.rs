//! Arrays on a GPU, as other libraries take them.

use super::dlpack::{self, DEFAULT_STREAM, Kind};
use super::pool::Lease;
use crate::error::Error;
use numpy::{IntoPyArray, PyArrayDyn, PyArrayMethods};
use ostler_sim::device::cuda::Cuda;
use ostler_sim::device::transfer::Reader;
use ostler_sim::device::{Device, DeviceError};
use pyo3::exceptions::{PyBufferError, PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PySlice, PyTuple};
use std::sync::Arc;

/// Numbers on a GPU, for `torch.from_dlpack`, `cupy.from_dlpack`, `jax.numpy.from_dlpack`.
#[pyclass(frozen, module = "ostler._ostler")]
pub struct DeviceArray {
    memory: Arc<Lease>,
    device: Arc<Cuda>,
    number: i32,
    kind: Kind,
    /// Entries before the first one.
    first: usize,
    shape: Vec<i64>,
    /// In entries.
    strides: Vec<i64>,
}

impl DeviceArray {
    /// All of `memory`.
    pub fn new(
        memory: &Arc<Lease>,
        device: &Arc<Cuda>,
        number: i32,
        kind: Kind,
        shape: &[usize],
    ) -> Self {
        let shape: Vec<i64> = shape.iter().map(|n| *n as i64).collect();
        Self {
            memory: Arc::clone(memory),
            device: Arc::clone(device),
            number,
            kind,
            first: 0,
            strides: dlpack::side_by_side(&shape),
            shape,
        }
    }

    fn entry(&self) -> usize {
        match self.kind {
            Kind::Int(bits) | Kind::Float(bits) | Kind::Other(_, bits) => usize::from(bits) / 8,
            Kind::Bool => 1,
        }
    }

    fn offset(&self) -> u64 {
        (self.first * self.entry()) as u64
    }

    /// Takes `slice` of an axis.
    fn cut(&mut self, axis: usize, slice: &Bound<'_, PySlice>) -> PyResult<()> {
        let slice = slice.indices(self.shape[axis] as isize)?;
        if slice.step < 1 {
            return Err(PyIndexError::new_err("slices go forwards"));
        }
        self.first += (slice.start as usize) * self.strides[axis] as usize;
        self.shape[axis] = slice.slicelength as i64;
        self.strides[axis] *= slice.step as i64;
        Ok(())
    }
}

#[pymethods]
impl DeviceArray {
    /// Entries along every axis.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.shape)
    }

    /// Its kind of numbers: `float32`, `bool`.
    #[getter]
    fn dtype(&self) -> String {
        self.kind.name()
    }

    /// Its device: `cuda:0`.
    #[getter]
    fn device(&self) -> String {
        format!("cuda:{}", self.number)
    }

    /// The Python array API's: kind and number of the device.
    fn __dlpack_device__(&self) -> (i32, i32) {
        (dlpack::CUDA, self.number)
    }

    /// A capsule of the array, without a copy. `stream`: where the consumer works; the default
    /// stream (`None`, 1) has the numbers in order, another one is told to wait for them.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<i64>,
        max_version: Option<Bound<'py, PyAny>>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        // Every version of the protocol takes what was before versions.
        let _ = max_version;
        if dl_device.is_some_and(|wanted| wanted != self.__dlpack_device__()) {
            let why = format!("this array is on cuda:{}, not elsewhere", self.number);
            return Err(PyBufferError::new_err(why));
        }
        if copy == Some(true) {
            return Err(PyBufferError::new_err("this array is handed on without a copy"));
        }
        match stream.unwrap_or(DEFAULT_STREAM) {
            DEFAULT_STREAM | -1 => {}
            0 => {
                let why = "stream 0 may be either default stream: 1 is the legacy one, 2 that of the thread";
                return Err(PyValueError::new_err(why));
            }
            other => match u64::try_from(other) {
                Ok(stream) => self.device.precede(stream).map_err(Error::Device)?,
                Err(_) => {
                    let why = format!("there is no stream {other}");
                    return Err(PyValueError::new_err(why));
                }
            },
        }
        let (memory, first, kind) = (&self.memory, self.offset(), self.kind);
        dlpack::give(py, memory, first, kind, &self.shape, &self.strides, self.number)
    }

    /// The protocol of CuPy and Numba, on the default stream.
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        let kind = match self.kind {
            Kind::Int(bits) => format!("<i{}", bits / 8),
            Kind::Bool => "|b1".into(),
            _ => format!("<f{}", self.entry()),
        };
        let strides = self.strides.iter().map(|n| n * self.entry() as i64);
        all.set_item("shape", self.shape(py)?)?;
        all.set_item("typestr", kind)?;
        all.set_item("data", (self.memory.address() + self.offset(), false))?;
        all.set_item("strides", PyTuple::new(py, strides.collect::<Vec<_>>())?)?;
        all.set_item("version", 3)?;
        all.set_item("stream", DEFAULT_STREAM)?;
        Ok(all)
    }

    /// A view of rows, and of columns: `array[a:b:c, d:e]`.
    fn __getitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut view = Self {
            memory: Arc::clone(&self.memory),
            device: Arc::clone(&self.device),
            shape: self.shape.clone(),
            strides: self.strides.clone(),
            ..*self
        };
        let keys = match key.cast::<PyTuple>() {
            Ok(keys) => keys.iter().collect(),
            Err(_) => vec![key.clone()],
        };
        if keys.len() > self.shape.len() {
            return Err(PyIndexError::new_err("more slices than axes"));
        }
        for (axis, key) in keys.iter().enumerate() {
            let slice = key.cast::<PySlice>();
            let slice =
                slice.map_err(|_| PyIndexError::new_err("only slices, by from_dlpack more"))?;
            view.cut(axis, slice)?;
        }
        Ok(view)
    }

    fn __len__(&self) -> usize {
        self.shape.first().map_or(0, |n| *n as usize)
    }

    /// A copy on the host. Waits for the device.
    fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let memory = &self.memory;
        let read = || -> Result<Reader, DeviceError> {
            let reader = Reader::new(self.device.staging("an array", memory.bytes())?);
            // SAFETY: as many bytes as the block has, which lives.
            unsafe { reader.begin(memory.address()) }?.wait()
        };
        let reader = py.detach(read).map_err(Error::Device)?;
        let (bytes, entry) = (reader.bytes(), self.entry());
        let count = self.shape.iter().product::<i64>() as usize;
        let inner: i64 = self.shape.get(1).copied().unwrap_or(1);
        let place = |i: usize| {
            let (row, column) = (i as i64 / inner, i as i64 % inner);
            let far = row * self.strides[0] + column * self.strides.get(1).copied().unwrap_or(0);
            (self.first + far as usize) * entry
        };
        let shape: Vec<usize> = self.shape.iter().map(|n| *n as usize).collect();
        match self.kind {
            Kind::Bool => {
                let flags = (0..count).map(|i| bytes[place(i)] != 0).collect::<Vec<_>>();
                Ok(shaped(flags.into_pyarray(py).to_dyn(), shape)?)
            }
            _ => {
                let number =
                    |i| bytemuck::pod_read_unaligned::<f32>(&bytes[place(i)..place(i) + 4]);
                let numbers = (0..count).map(number).collect::<Vec<_>>();
                Ok(shaped(numbers.into_pyarray(py).to_dyn(), shape)?)
            }
        }
    }

    fn __repr__(&self) -> String {
        format!("DeviceArray({:?}, {}, cuda:{})", self.shape, self.kind.name(), self.number)
    }
}

fn shaped<'py, T: numpy::Element>(
    flat: &Bound<'py, PyArrayDyn<T>>,
    shape: Vec<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    Ok(flat.reshape(shape)?.into_any())
}

//! DLPack's capsules: arrays that are handed on without a copy.
//!
//! Source: <https://dmlc.github.io/dlpack/latest/>, the structures before version 1, which every
//! library takes and gives.

use crate::device::pool::Lease;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{CStr, c_int, c_void};
use std::sync::Arc;

/// A GPU's memory.
pub const CUDA: i32 = 2;
/// A name for the capsule of an array that nobody has taken yet.
const FRESH: &CStr = c"dltensor";
/// The name once somebody has.
const USED: &CStr = c"used_dltensor";

/// The legacy default stream, as the protocol counts streams.
pub const DEFAULT_STREAM: i64 = 1;

#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device_kind: c_int,
    device_number: c_int,
    axes: c_int,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *mut i64,
    /// In entries; null: they lie side by side.
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
struct DlManagedTensor {
    tensor: DlTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Self)>,
}

/// What numbers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Signed whole numbers of so many bits.
    Int(u8),
    /// Floating-point numbers of so many bits.
    Float(u8),
    /// True or false, in a byte.
    Bool,
    /// Another code of the protocol.
    Other(u8, u8),
}

impl Kind {
    fn code(self) -> (u8, u8) {
        match self {
            Self::Int(bits) => (0, bits),
            Self::Float(bits) => (2, bits),
            Self::Bool => (6, 8),
            Self::Other(code, bits) => (code, bits),
        }
    }

    fn of(code: u8, bits: u8) -> Self {
        match (code, bits) {
            (0, bits) => Self::Int(bits),
            (2, bits) => Self::Float(bits),
            (6, 8) => Self::Bool,
            (code, bits) => Self::Other(code, bits),
        }
    }

    /// For messages.
    pub fn name(self) -> String {
        match self {
            Self::Int(bits) => format!("int{bits}"),
            Self::Float(bits) => format!("float{bits}"),
            Self::Bool => "bool".into(),
            Self::Other(4, bits) => format!("bfloat{bits}"),
            Self::Other(code, bits) => format!("of another kind (code {code}, {bits} bits)"),
        }
    }
}

/// What a capsule is of, alive until it is deleted.
struct Owned {
    managed: DlManagedTensor,
    shape: Vec<i64>,
    strides: Vec<i64>,
    _memory: Arc<Lease>,
}

unsafe extern "C" fn delete(managed: *mut DlManagedTensor) {
    // SAFETY: a capsule of `give` has its `Owned` there, and DLPack's users delete once.
    unsafe { drop(Box::from_raw((*managed).context.cast::<Owned>())) };
}

/// Python's destructor of a capsule: nobody has taken the array.
unsafe extern "C" fn destroy(capsule: *mut ffi::PyObject) {
    // SAFETY: Python calls it with the capsule; its pointer is what `give` has put there.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, FRESH.as_ptr()) != 0 {
            delete(ffi::PyCapsule_GetPointer(capsule, FRESH.as_ptr()).cast());
        }
    }
}

/// A capsule of numbers at byte `first` of `memory`; `strides` are in entries.
pub fn give<'py>(
    py: Python<'py>,
    memory: &Arc<Lease>,
    first: u64,
    kind: Kind,
    shape: &[i64],
    strides: &[i64],
    device_number: i32,
) -> PyResult<Bound<'py, PyAny>> {
    let (code, bits) = kind.code();
    let mut owned = Box::new(Owned {
        managed: DlManagedTensor {
            tensor: DlTensor {
                data: (memory.address() + first) as *mut c_void,
                device_kind: CUDA,
                device_number,
                axes: shape.len() as c_int,
                code,
                bits,
                lanes: 1,
                shape: std::ptr::null_mut(),
                strides: std::ptr::null_mut(),
                byte_offset: 0,
            },
            context: std::ptr::null_mut(),
            deleter: Some(delete),
        },
        shape: shape.to_vec(),
        strides: strides.to_vec(),
        _memory: Arc::clone(memory),
    });
    owned.managed.tensor.shape = owned.shape.as_mut_ptr();
    owned.managed.tensor.strides = owned.strides.as_mut_ptr();
    let raw = Box::into_raw(owned);
    // SAFETY: `raw` is alive, and freed once: by the capsule's destructor, by whoever has taken
    // the array, or here where there is no capsule.
    unsafe {
        (*raw).managed.context = raw.cast();
        let managed: *mut DlManagedTensor = &raw mut (*raw).managed;
        let capsule = ffi::PyCapsule_New(managed.cast(), FRESH.as_ptr(), Some(destroy));
        if capsule.is_null() {
            drop(Box::from_raw(raw));
        }
        Bound::from_owned_ptr_or_err(py, capsule)
    }
}

/// An array that somebody has handed over, until it is dropped. Its numbers may be read by work
/// on the device's default stream.
#[derive(Debug)]
pub struct Taken {
    managed: *mut DlManagedTensor,
    /// Where its first number is, on the device.
    pub address: u64,
    /// Its kind of numbers.
    pub kind: Kind,
    /// Entries along every axis.
    pub shape: Vec<usize>,
    /// From one entry to the next along every axis, in entries.
    pub strides: Vec<i64>,
}

// SAFETY: the protocol lets any thread delete an array.
unsafe impl Send for Taken {}
// SAFETY: nothing is changed through a shared reference.
unsafe impl Sync for Taken {}

impl Drop for Taken {
    fn drop(&mut self) {
        // SAFETY: it was taken once, by `take`, which has renamed its capsule.
        unsafe {
            if let Some(deleter) = (*self.managed).deleter {
                deleter(self.managed);
            }
        }
    }
}

/// Takes an array of GPU `device_number`; `name` is for messages.
///
/// # Errors
/// Nothing that DLPack hands over; an array elsewhere.
pub fn take(array: &Bound<'_, PyAny>, name: &str, device_number: i32) -> PyResult<Taken> {
    let py = array.py();
    let there = |what: &str| {
        format!(
            "{name} {what}, and the environments on cuda:{device_number}: hand over an array of \
             that device, as torch.as_tensor(..., device=\"cuda:{device_number}\")"
        )
    };
    let Ok(place) = array.getattr("__dlpack_device__") else {
        let kind = array.get_type().name()?.to_string();
        return Err(PyTypeError::new_err(there(&format!("are a {kind}"))));
    };
    let (kind, number): (i32, i32) = place.call0()?.extract()?;
    match (kind, number) {
        (CUDA, number) if number == device_number => {}
        (CUDA, other) => {
            return Err(PyValueError::new_err(there(&format!("are on cuda:{other}"))));
        }
        (1, _) => return Err(PyValueError::new_err(there("are on the processor"))),
        _ => {
            let why = there(&format!("are on a device of DLPack's kind {kind}"));
            return Err(PyValueError::new_err(why));
        }
    }
    // Whoever computes it on another stream lets the default one wait for that.
    let arguments = pyo3::types::PyDict::new(py);
    arguments.set_item("stream", DEFAULT_STREAM)?;
    let capsule = array.call_method("__dlpack__", (), Some(&arguments))?;
    // SAFETY: the capsule is alive; the name says what its pointer is, and that nobody has taken
    // the array; renamed, nobody else takes it. Shape and strides hold as many numbers as there
    // are axes.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule.as_ptr(), FRESH.as_ptr()) == 0 {
            let why = format!("{name} come in no capsule of DLPack that is known");
            return Err(PyTypeError::new_err(why));
        }
        let pointer = ffi::PyCapsule_GetPointer(capsule.as_ptr(), FRESH.as_ptr());
        let managed = pointer.cast::<DlManagedTensor>();
        if ffi::PyCapsule_SetName(capsule.as_ptr(), USED.as_ptr()) != 0 {
            return Err(PyErr::fetch(py));
        }
        let tensor = &(*managed).tensor;
        let axes = usize::try_from(tensor.axes).unwrap_or_default();
        let numbers = |from: *const i64| match axes {
            0 => Vec::new(),
            n => std::slice::from_raw_parts(from, n).to_vec(),
        };
        let shape = numbers(tensor.shape);
        let strides = match tensor.strides.is_null() {
            true => side_by_side(&shape),
            false => numbers(tensor.strides),
        };
        let kind = match tensor.lanes {
            1 => Kind::of(tensor.code, tensor.bits),
            _ => Kind::Other(tensor.code, tensor.bits),
        };
        Ok(Taken {
            managed,
            address: tensor.data as u64 + tensor.byte_offset,
            kind,
            shape: shape.iter().map(|n| *n as usize).collect(),
            strides,
        })
    }
}

/// Strides of numbers that lie side by side, the last axis first.
pub fn side_by_side(shape: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    strides
}

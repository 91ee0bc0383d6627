//! Marks in the stream.

use super::{Context, Refused, STREAM, check};
use cudarc::driver::sys::{self, CUevent, CUevent_flags, CUresult};
use std::sync::Arc;

/// A mark that the host can wait for.
#[derive(Debug)]
pub(crate) struct Event {
    event: CUevent,
    context: Arc<Context>,
}

// SAFETY: an event is a number to the driver, whose functions may be called from any
// thread.
unsafe impl Send for Event {}

impl Event {
    /// One that was never recorded: nothing to wait for.
    pub(crate) fn new(context: &Arc<Context>) -> Result<Self, Refused> {
        context.enter()?;
        let mut event = std::ptr::null_mut();
        // Without times, which cost.
        let flags = CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
        // SAFETY: the function writes one handle, destroyed once, by `drop`.
        check("cuEventCreate", unsafe { sys::cuEventCreate(&mut event, flags) })?;
        Ok(Self { event, context: Arc::clone(context) })
    }

    /// Marks the stream's work so far.
    pub(crate) fn record(&mut self) -> Result<(), Refused> {
        self.context.enter()?;
        // SAFETY: the event is alive and of the context that was entered.
        check("cuEventRecord", unsafe { sys::cuEventRecord(self.event, STREAM) })
    }

    /// Lets another stream of the device wait for the marked work; the host goes on. `stream` is
    /// its handle, as CUDA's runtime and the driver have it.
    pub(crate) fn precede(&self, stream: u64) -> Result<(), Refused> {
        self.context.enter()?;
        // SAFETY: the event is alive; a handle that is no stream's is the driver's to refuse.
        check("cuStreamWaitEvent", unsafe {
            sys::cuStreamWaitEvent(stream as sys::CUstream, self.event, 0)
        })
    }

    /// Whether the marked work is done.
    pub(crate) fn is_done(&self) -> Result<bool, Refused> {
        self.context.enter()?;
        // SAFETY: the event is alive.
        match unsafe { sys::cuEventQuery(self.event) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            result => check("cuEventQuery", result).map(|()| true),
        }
    }

    /// Waits until the marked work is done.
    pub(crate) fn wait(&self) -> Result<(), Refused> {
        self.context.enter()?;
        // SAFETY: the event is alive.
        check("cuEventSynchronize", unsafe { sys::cuEventSynchronize(self.event) })
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: created once, destroyed once.
            let _ = unsafe { sys::cuEventDestroy_v2(self.event) };
        }
    }
}

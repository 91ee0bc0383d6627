//! One buffer, written by several threads in parts that do not overlap.

use std::marker::PhantomData;

/// A mutable slice that threads cut into parts.
///
/// Invariant for callers: between two joins of the pool, an element is touched by
/// one part of the loop only. In this crate part `i` of a loop touches only
/// elements of its own environments.
#[derive(Debug)]
pub struct Shared<'a, T> {
    start: *mut T,
    len: usize,
    lifetime: PhantomData<&'a mut [T]>,
}

// SAFETY: it is a `&mut [T]` in parts; the functions that hand out parts are
// unsafe and ask their callers for parts that do not overlap, and `T: Send` lets a
// part be used by another thread.
unsafe impl<T: Send> Sync for Shared<'_, T> {}

impl<'a, T> Shared<'a, T> {
    /// Borrows all of `slice`.
    pub fn of(slice: &'a mut [T]) -> Self {
        Self {
            start: slice.as_mut_ptr(),
            len: slice.len(),
            lifetime: PhantomData,
        }
    }

    /// Elements `first..first + len`; panics past the end.
    ///
    /// # Safety
    /// No other live part may contain any of these elements.
    pub unsafe fn part(&self, first: usize, len: usize) -> &'a mut [T] {
        assert!(
            first <= self.len && len <= self.len - first,
            "part past the end"
        );
        // SAFETY: within the slice by the line above, which outlives 'a; not aliased
        // by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(first), len) }
    }
}

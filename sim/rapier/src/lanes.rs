//! Writing one environment's column of a `[k][N]` buffer from several threads.

use std::marker::PhantomData;

/// A `[k][N]` buffer whose columns are written by different threads.
#[derive(Debug)]
pub(super) struct Columns<'a, T> {
    data: *mut T,
    rows: usize,
    width: usize,
    owner: PhantomData<&'a mut [T]>,
}

// SAFETY: the buffer is borrowed mutably for 'a, so nobody else reaches it; threads
// share it only through `column`, whose caller promises that no two columns of the
// same index exist at the same time, and different columns share no element.
unsafe impl<T: Send> Sync for Columns<'_, T> {}

impl<'a, T> Columns<'a, T> {
    /// Columns of a buffer with `width` environments. A width of 0 has no columns.
    pub(super) fn new(buffer: &'a mut [T], width: usize) -> Self {
        Self {
            data: buffer.as_mut_ptr(),
            rows: buffer.len().checked_div(width).unwrap_or(0),
            width,
            owner: PhantomData,
        }
    }

    /// The column of environment `index`.
    ///
    /// # Safety
    /// While the column lives, no other column of the same `index` may exist.
    pub(super) unsafe fn column(&self, index: usize) -> Column<'_, T> {
        assert!(index < self.width, "environment {index} of {}", self.width);
        Column {
            // SAFETY: index < width, and a buffer with rows has at least width
            // elements; without rows the pointer is never used.
            first: unsafe { self.data.add(if self.rows == 0 { 0 } else { index }) },
            rows: self.rows,
            stride: self.width,
            owner: PhantomData,
        }
    }
}

/// One environment's entries of a `[k][N]` buffer.
#[derive(Debug)]
pub(super) struct Column<'a, T> {
    first: *mut T,
    rows: usize,
    stride: usize,
    owner: PhantomData<&'a mut T>,
}

impl<T> Column<'_, T> {
    /// Entry `row`.
    pub(super) fn at(&mut self, row: usize) -> &mut T {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        // SAFETY: row < rows and the column's index < stride, so the element lies
        // within the rows * stride elements of the buffer; `Columns::column`'s
        // promise makes this the only way to it, and `&mut self` the only borrow.
        unsafe { &mut *self.first.add(row * self.stride) }
    }

    /// Writes `values` to the rows from `first` on.
    pub(super) fn write(&mut self, first: usize, values: &[T])
    where
        T: Copy,
    {
        for (i, value) in values.iter().enumerate() {
            *self.at(first + i) = *value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Columns;

    #[test]
    fn columns_are_the_environments_entries() {
        let mut buffer = vec![0; 6];
        let columns = Columns::new(&mut buffer, 3);
        for e in 0..3 {
            // SAFETY: one column at a time.
            let mut column = unsafe { columns.column(e) };
            column.write(0, &[e, 10 + e]);
        }
        assert_eq!(buffer, [0, 1, 2, 10, 11, 12]);
    }

    #[test]
    #[should_panic(expected = "row 2 of 2")]
    fn a_row_too_far_panics() {
        let mut buffer = vec![0; 6];
        let columns = Columns::new(&mut buffer, 3);
        // SAFETY: one column at a time.
        unsafe { columns.column(1) }.write(1, &[1, 2]);
    }
}

//! A robot's tables for kernels, in double precision, and the same as a kernel
//! takes it.
//!
//! Names, order, shapes and units are those of the lists in `sim/kernels/tables.cuh`.

use std::marker::PhantomData;
use std::os::raw::c_int;

impl RobotTables {
    /// Of everything in it: robots with the same one have the same dynamics.
    pub(crate) fn digest(&self) -> blake3::Hash {
        let mut hash = blake3::Hasher::new();
        for (name, count) in self.counts() {
            hash.update(name.as_bytes());
            hash.update(&(count as u64).to_le_bytes());
        }
        for (_, x) in self.scalars() {
            hash.update(&x.to_le_bytes());
        }
        for (_, array) in self.ints() {
            hash.update(bytemuck::cast_slice(array));
        }
        for (_, array) in self.reals() {
            hash.update(bytemuck::cast_slice(array));
        }
        hash.finalize()
    }
}

include!(concat!(env!("OUT_DIR"), "/robot.rs"));

macro_rules! tables {
    (
        OSTLER_COUNTS { $(($count:ident $_count:ident $says_count:literal))* }
        OSTLER_SCALARS { $(($scalar:ident $_scalar:ident $says_scalar:literal))* }
        OSTLER_INTS { $(($int:ident $_int:ident $says_int:literal))* }
        OSTLER_REALS { $(($real:ident $_real:ident $says_real:literal))* }
    ) => {
        /// A robot lowered to tables.
        #[allow(rustdoc::broken_intra_doc_links, reason = "`[nb]` is a size")]
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct RobotTables {
            $(#[doc = $says_count] pub $count: usize,)*
            $(#[doc = $says_scalar] pub $scalar: f64,)*
            $(#[doc = $says_int] pub $int: Vec<i32>,)*
            $(#[doc = $says_real] pub $real: Vec<f64>,)*
        }

        impl RobotTables {
            /// Numbers of things, in the kernels' order.
            pub fn counts(&self) -> impl Iterator<Item = (&'static str, usize)> {
                [$((stringify!($count), self.$count)),*].into_iter()
            }

            /// Single numbers, in the kernels' order.
            pub fn scalars(&self) -> impl Iterator<Item = (&'static str, f64)> {
                [$((stringify!($scalar), self.$scalar)),*].into_iter()
            }

            /// Arrays of whole numbers, in the kernels' order.
            pub fn ints(&self) -> impl Iterator<Item = (&'static str, &[i32])> {
                [$((stringify!($int), self.$int.as_slice())),*].into_iter()
            }

            /// Arrays of real numbers, in the kernels' order.
            pub fn reals(&self) -> impl Iterator<Item = (&'static str, &[f64])> {
                [$((stringify!($real), self.$real.as_slice())),*].into_iter()
            }
        }

        /// The real numbers of a [`RobotTables`], rounded to the kernel's type.
        #[derive(Debug, Clone, PartialEq)]
        pub struct RealTables<T> {
            $(pub $scalar: T,)*
            $(pub $real: Vec<T>,)*
        }

        impl<T: Scalar> RealTables<T> {
            /// Rounds every real number of `plan`.
            pub fn new(plan: &RobotTables) -> Self {
                Self {
                    $($scalar: T::round(plan.$scalar),)*
                    $($real: plan.$real.iter().map(|x| T::round(*x)).collect(),)*
                }
            }

            /// The tables as the generic kernel takes them: `Tables<T>` of
            /// `tables.cuh`, pointing into `self` and `plan`.
            pub fn raw<'a>(&'a self, plan: &'a RobotTables) -> RawTables<'a, T> {
                RawTables {
                    // Every count was bounded when the plan was made.
                    $($count: plan.$count as c_int,)*
                    $($scalar: self.$scalar,)*
                    $($int: plan.$int.as_ptr(),)*
                    $($real: self.$real.as_ptr(),)*
                    borrowed: PhantomData,
                }
            }
        }

        /// `Tables<T>` of `tables.cuh`: pointers into a [`RobotTables`] and [`RealTables`].
        #[derive(Debug, Clone, Copy)]
        #[repr(C)]
        pub struct RawTables<'a, T> {
            $(pub $count: c_int,)*
            $(pub $scalar: T,)*
            $(pub $int: *const c_int,)*
            $(pub $real: *const T,)*
            borrowed: PhantomData<&'a T>,
        }
    };
}

robot_tables!(tables);

/// A kernel's type of real numbers.
pub trait Scalar: Copy {
    /// The nearest number of this type.
    fn round(x: f64) -> Self;
}

impl Scalar for f32 {
    fn round(x: f64) -> Self {
        x as f32
    }
}

impl Scalar for f64 {
    fn round(x: f64) -> Self {
        x
    }
}

/// Position of each number in a packed soft constraint.
pub mod soft {
    pub use crate::kernels::{
        SOFT as LEN, SOFT_B as B, SOFT_D0 as D0, SOFT_DIAG as DIAG, SOFT_DW as DW, SOFT_HB as HB,
        SOFT_IW as IW, SOFT_K as K, SOFT_LA as LA, SOFT_MARGIN as MARGIN, SOFT_MID as MID,
        SOFT_POWER as POWER,
    };
}

/// "No limit" in ranges: finite in single precision.
pub const UNLIMITED: f64 = 1e30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_tables_point_at_the_rounded_numbers() {
        let plan =
            RobotTables { nv: 3, timestep: 0.1, qpos0: vec![1.0, 0.3], ..RobotTables::default() };
        let single = RealTables::<f32>::new(&plan);
        assert_eq!(single.qpos0, [1.0, 0.3_f32]);
        let raw = single.raw(&plan);
        assert_eq!((raw.nv, raw.timestep), (3, 0.1_f32));
        assert_eq!(raw.qpos0, single.qpos0.as_ptr());
        assert_eq!(raw.body_parent, plan.body_parent.as_ptr());
        // Nothing between the numbers that C++ would not put there.
        let size = std::mem::size_of::<RawTables<f64>>();
        let (counts, reals) = (plan.counts().count(), plan.scalars().count());
        let pointers = plan.ints().count() + plan.reals().count();
        assert_eq!(size, (counts * 4).next_multiple_of(8) + reals * 8 + pointers * 8);
    }
}

//! A robot's tables for kernels, in double precision, and the same as a kernel
//! takes it.
//!
//! Names, order, shapes and units are those of `sim/kernels/tables.cuh`, where each
//! is described; a test compares the two files.

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

/// Writes the tables' structs from one list of names.
macro_rules! tables {
    (
        counts { $($count:ident)* }
        scalars { $($scalar:ident)* }
        ints { $($int:ident)* }
        reals { $($real:ident)* }
    ) => {
        /// A robot lowered to tables: see `sim/kernels/tables.cuh` for each.
        #[derive(Debug, Clone, Default, PartialEq)]
        #[allow(missing_docs)]
        pub struct RobotTables {
            $(pub $count: usize,)*
            $(pub $scalar: f64,)*
            $(pub $int: Vec<i32>,)*
            $(pub $real: Vec<f64>,)*
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
        #[allow(missing_docs)]
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
        #[allow(missing_docs)]
        pub struct RawTables<'a, T> {
            $(pub $count: c_int,)*
            $(pub $scalar: T,)*
            $(pub $int: *const c_int,)*
            $(pub $real: *const T,)*
            borrowed: PhantomData<&'a T>,
        }
    };
}

tables! {
    counts {
        nq nv nu na nb nj ntree nframe ngeom nhess nlim nfric nrow nitem nrowj ncg
        nwpair npair ngroup nwatch nball nbrick nwslot npslot npdim npath nten ntenj nactj nshare nheld
        nfluid nell ngrav nmeter nsense felt ncsensor ncread nvary nderive nlump npiece nweigh nforced nmotor nmemory nredrawn nwide gravity_at
        rubs integrator slopes planar elliptic dense eulerdamp
    }
    scalars {
        timestep gravity_x gravity_y gravity_z density viscosity wind_x wind_y wind_z
        scale impratio
    }
    ints {
        body_parent body_tree body_jnt body_dof body_skew tree_root jnt_type jnt_body jnt_qpos
        jnt_dof dof_body dof_jnt dof_parent dof_nanc hrow_adr hrow_col mrow_adr mrow_col
        frame_body lim_qpos lim_dof fric_dof row_kind row_adr row_dof item_kind item_row
        item_int item_path ipath_entry ipath_dof cg_type cg_body cg_geom cg_data
        cg_brick group_adr group_live group_ball watch_qpos ball_body pair_kind pair_g1 pair_g2 pair_flip pair_dim pair_hits pair_path path_dof
        path_sign spot_body ten_adr ten_qpos ten_dof ten_tree ten_seg seg_spot seg_kind
        seg_inside seg_path seg_entry seg_dof seg_moves act_adr act_qpos act_dof
        act_moves act_arms act_int act_dyn act_state act_muscle share_adr share_act
        act_early fluid_body ell_body grav_body meter_kind meter_body meter_adr meter_shape meter_geom meter_item part_adr part_body
        csensor_kind csensor_adr csensor_last csensor_side
        dof_grav mesh_vert mesh_face face_adr face_num face_vert vert_adr
        vert_num vert_face field_adr field_rows field_cols
        vary_body vary_qpos0 vary_stiffness vary_damping vary_armature vary_loss vary_kp vary_kd
        vary_effort vary_friction lim_weight fric_weight row_weight pair_weight pair_mix
        lump_body piece_lump piece_mass piece_com piece_moments piece_tensor
        weigh_kind weigh_what weigh_count weigh_piece forced_body forced_at forced_piece
        motor_int net_int net_seen layer_int
    }
    reals {
        qpos0 qpos_spring body_pos body_quat body_mass body_mcom body_inertia jnt_pos
        jnt_axis jnt_stiffness dof_damping dof_armature dof_actlo dof_acthi frame_pos
        frame_quat lim_lo lim_hi lim_soft fric_loss fric_soft row_loss row_soft
        item_real cg_pos cg_mat cg_size cg_bound cg_half group_near watch_lo watch_hi ball_pos pair_soft pair_fricb pair_mu pair_dfri
        pair_reach pair_near spot_pos spot_quat seg_radius seg_share ten_coef ten_stiffness ten_damping ten_armature ten_lo ten_hi act_coef act_ctrllo
        act_ctrlhi act_forcelo act_forcehi act_gain act_bias act_gear act_rod act_period
        act_curve act_prm act_step act_lo act_hi share_lo share_hi fluid_pos fluid_mat fluid_box grav_mass grav_mcom meter_pos meter_mat meter_size part_mass part_mcom part_inertia
        csensor_above
        ell_pos ell_mat ell_real cg_friction pair_shift lump_rest piece_pos piece_mat piece_own
        piece_axes weigh_pos forced_pos motor_real net_real net_weight mesh_pos mesh_bound face_normal field_data
        field_size
    }
}

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

/// Position of each number in a packed soft constraint: `SOFT_*` of `tables.cuh`.
pub mod soft {
    #![allow(missing_docs)]
    pub const K: usize = 0;
    pub const B: usize = 1;
    pub const D0: usize = 2;
    pub const DW: usize = 3;
    pub const IW: usize = 4;
    pub const MID: usize = 5;
    pub const LA: usize = 6;
    pub const HB: usize = 7;
    pub const POWER: usize = 8;
    pub const MARGIN: usize = 9;
    pub const DIAG: usize = 10;
    /// How many there are.
    pub const LEN: usize = 11;
}

/// "No limit" in ranges: finite in single precision.
pub const UNLIMITED: f64 = 1e30;

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: &str = include_str!("../../../kernels/tables.cuh");

    /// Names in the list `OSTLER_<name>(X)`.
    fn list(name: &str) -> Vec<String> {
        let start = KERNEL.find(&format!("#define OSTLER_{name}(X)")).unwrap();
        let body = KERNEL[start..].split_once('\n').unwrap().1;
        let end = body.find("\n\n").unwrap();
        body[..end]
            .split("X(")
            .skip(1)
            .map(|part| part.split(')').next().unwrap().to_string())
            .collect()
    }

    #[test]
    fn names_and_order_are_the_kernels() {
        let plan = RobotTables::default();
        assert_eq!(plan.counts().map(|x| x.0).collect::<Vec<_>>(), list("COUNTS"));
        assert_eq!(plan.scalars().map(|x| x.0).collect::<Vec<_>>(), list("SCALARS"));
        assert_eq!(plan.ints().map(|x| x.0).collect::<Vec<_>>(), list("INTS"));
        assert_eq!(plan.reals().map(|x| x.0).collect::<Vec<_>>(), list("REALS"));
        assert!(list("INTS").len() > 50);
    }

    #[test]
    fn packed_soft_constraints_are_the_kernels() {
        let start = KERNEL.find("enum { SOFT_K").unwrap();
        let body = &KERNEL[start + "enum {".len()..];
        let names: Vec<_> = body[..body.find('}').unwrap()].split(',').map(str::trim).collect();
        let ours = [
            ("SOFT_K", soft::K),
            ("SOFT_B", soft::B),
            ("SOFT_D0", soft::D0),
            ("SOFT_DW", soft::DW),
            ("SOFT_IW", soft::IW),
            ("SOFT_MID", soft::MID),
            ("SOFT_LA", soft::LA),
            ("SOFT_HB", soft::HB),
            ("SOFT_POWER", soft::POWER),
            ("SOFT_MARGIN", soft::MARGIN),
            ("SOFT_DIAG", soft::DIAG),
            ("SOFT", soft::LEN),
        ];
        assert_eq!(names, ours.map(|x| x.0));
        assert!(ours.iter().enumerate().all(|(i, (_, at))| i == *at));
    }

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

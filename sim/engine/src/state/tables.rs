//! A task's numbers as kernels take them.

use crate::device::Address;
use crate::kernels::NOWHERE;
use bytemuck::{Pod, Zeroable};
use ostler_base::math::normalized;
use ostler_model::{Field, Model};

macro_rules! element {
    (real) => {
        f32
    };
    (word) => {
        u32
    };
}

macro_rules! real {
    (real) => {
        true
    };
    (word) => {
        false
    };
}

macro_rules! tables {
    ($(($name:ident $_n:ident $kind:ident $factor:literal $size:ident $says:literal))*) => {
        /// Name, factor and size, whether its entries are numbers (else they are unsigned),
        /// and contents.
        pub const TABLES: [(&str, usize, &str, bool, &str); [$(stringify!($name)),*].len()] =
            [$((stringify!($name), $factor, stringify!($size), real!($kind), $says)),*];

        /// A task's numbers, but for those in its expressions, and the robot's kinematics:
        /// `OSTLER_TABLES` of `kernels/state.h`. `Task::tables` fills them.
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct Tables {
            $(#[doc = $says] pub $name: Vec<element!($kind)>,)*
        }

        /// Where a kernel finds them.
        #[derive(Debug, Clone, Copy, Pod, Zeroable)]
        #[repr(C)]
        pub struct TableAddresses {
            $(#[doc = $says] pub $name: Address,)*
        }

        impl Tables {
            /// Where they are on the host.
            pub fn addresses(&self) -> TableAddresses {
                TableAddresses { $($name: self.$name.as_ptr() as Address),* }
            }

            /// Where they are when [`bytes`](Self::bytes) begin at `first`.
            pub fn laid(&self, first: Address) -> TableAddresses {
                let mut next = first;
                $(let $name = next;
                next += 4 * self.$name.len() as Address;)*
                let _ = next;
                TableAddresses { $($name),* }
            }

            /// One behind the other.
            pub fn bytes(&self) -> Vec<u8> {
                let mut all = Vec::new();
                $(all.extend_from_slice(bytemuck::cast_slice(&self.$name));)*
                all
            }

            /// Entries of every table, in the order of [`TABLES`].
            pub fn lengths(&self) -> [usize; TABLES.len()] {
                [$(self.$name.len()),*]
            }
        }
    };
}
task_tables!(tables);

impl Tables {
    /// The robot's kinematics alone.
    pub fn of(model: &Model) -> Self {
        let mut t = Self::default();
        for body in &model.bodies {
            t.body_parent.push(body.parent as u32);
            t.body_at.extend(body.pos.map(|x| x as f32));
            t.body_turn.extend(normalized(body.quat.map(|x| x as f32)));
            for joint in &model.joints[body.joints.clone()] {
                t.joint_kind.push(joint.kind as u32);
                t.joint_pos.extend(joint.pos.map(|x| x as f32));
                t.joint_axis.extend(joint.axis.map(|x| x as f32));
                t.joint_reference.push(joint.reference as f32);
                let own = model.varied_row(Field::Qpos0, t.joint_vary.len());
                t.joint_vary.push(own.map_or(NOWHERE, |row| row as u32));
                t.joint_q.push(joint.qpos_adr as u32);
                t.joint_v.push(joint.dof_adr as u32);
            }
            t.body_joints.push(t.joint_kind.len() as u32);
        }
        t
    }
}

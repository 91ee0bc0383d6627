//! The messages of an ONNX file that describe a network, by the numbers of `onnx.proto3`
//! (ONNX, "Open Neural Network Exchange - ONNX"): read for networks of actuators, written for
//! exported policies. All else in a file is passed over.
//!
//! Messages of which there are many stay bytes until they are wanted: an empty one takes two
//! bytes of a file and hundreds in memory.

use prost::bytes::{Buf, BufMut};
use prost::encoding::{DecodeContext, WireType, bytes, double, float, int32, int64, skip_field};
use prost::encoding::{message, string};
use prost::{DecodeError, Message};

fn is_default<T: Default + PartialEq>(x: &T) -> bool {
    *x == T::default()
}

/// Structs with their fields: `one` value, a list of `all`, a message that is there or not
/// (`maybe`); its codec in the file, its number.
macro_rules! messages {
    ($($(#[$doc:meta])* $name:ident {
        $($(#[$note:meta])* $field:ident: $ty:ty = $many:ident $codec:ident $tag:literal,)*
    })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Default, PartialEq)]
        #[allow(missing_docs, reason = "the names of onnx.proto3")]
        pub struct $name {
            $($(#[$note])* pub $field: $ty,)*
        }

        impl Message for $name {
            fn merge_field(
                &mut self,
                tag: u32,
                wire: WireType,
                buf: &mut impl Buf,
                ctx: DecodeContext,
            ) -> Result<(), DecodeError> {
                match tag {
                    $($tag => messages!(@merge $many $codec wire &mut self.$field, buf, ctx),)*
                    _ => skip_field(wire, tag, buf, ctx),
                }
            }

            fn encode_raw(&self, buf: &mut impl BufMut) {
                $(messages!(@encode $many $codec $tag &self.$field, buf);)*
            }

            fn encoded_len(&self) -> usize {
                0 $(+ messages!(@len $many $codec $tag &self.$field))*
            }

            fn clear(&mut self) {
                *self = Self::default();
            }
        }
    )*};
    (@merge one $codec:ident $wire:ident $at:expr, $buf:ident, $ctx:ident) => {
        $codec::merge($wire, $at, $buf, $ctx)
    };
    (@merge all $codec:ident $wire:ident $at:expr, $buf:ident, $ctx:ident) => {
        $codec::merge_repeated($wire, $at, $buf, $ctx)
    };
    (@merge maybe $codec:ident $wire:ident $at:expr, $buf:ident, $ctx:ident) => {
        $codec::merge($wire, ($at).get_or_insert_with(Default::default), $buf, $ctx)
    };
    // What has its default is left out, as proto3 has it.
    (@encode one $codec:ident $tag:literal $at:expr, $buf:ident) => {
        if !is_default($at) {
            $codec::encode($tag, $at, $buf);
        }
    };
    (@encode all $codec:ident $tag:literal $at:expr, $buf:ident) => {
        $codec::encode_repeated($tag, $at, $buf)
    };
    (@encode maybe $codec:ident $tag:literal $at:expr, $buf:ident) => {
        if let Some(inner) = $at {
            $codec::encode($tag, inner, $buf);
        }
    };
    (@len one $codec:ident $tag:literal $at:expr) => {
        if is_default($at) { 0 } else { $codec::encoded_len($tag, $at) }
    };
    (@len all $codec:ident $tag:literal $at:expr) => { $codec::encoded_len_repeated($tag, $at) };
    (@len maybe $codec:ident $tag:literal $at:expr) => {
        ($at).as_ref().map_or(0, |inner| $codec::encoded_len($tag, inner))
    };
}

messages! {
    /// `ModelProto`.
    ModelFile {
        ir_version: i64 = one int64 1,
        producer_name: String = one string 2,
        producer_version: String = one string 3,
        graph: Option<GraphMessage> = maybe message 7,
        opset_import: Vec<OperatorSet> = all message 8,
        metadata_props: Vec<EntryMessage> = all message 14,
    }
    /// `OperatorSetIdProto`.
    OperatorSet {
        domain: String = one string 1,
        version: i64 = one int64 2,
    }
    /// `GraphProto`.
    GraphMessage {
        /// [`NodeMessage`]s.
        node: Vec<Vec<u8>> = all bytes 1,
        name: String = one string 2,
        /// [`TensorMessage`]s.
        initializer: Vec<Vec<u8>> = all bytes 5,
        /// [`ValueMessage`]s.
        input: Vec<Vec<u8>> = all bytes 11,
        /// [`ValueMessage`]s.
        output: Vec<Vec<u8>> = all bytes 12,
    }
    /// `NodeProto`.
    NodeMessage {
        input: Vec<String> = all string 1,
        output: Vec<String> = all string 2,
        name: String = one string 3,
        op_type: String = one string 4,
        /// [`AttributeMessage`]s.
        attribute: Vec<Vec<u8>> = all bytes 5,
        domain: String = one string 7,
    }
    /// `AttributeProto`.
    AttributeMessage {
        name: String = one string 1,
        f: f32 = one float 2,
        i: i64 = one int64 3,
        s: Vec<u8> = one bytes 4,
        t: Option<TensorMessage> = maybe message 5,
        floats: Vec<f32> = all float 7,
        ints: Vec<i64> = all int64 8,
        strings: Vec<Vec<u8>> = all bytes 9,
        /// `AttributeType`.
        kind: i32 = one int32 20,
    }
    /// `TensorProto`.
    TensorMessage {
        dims: Vec<i64> = all int64 1,
        data_type: i32 = one int32 2,
        float_data: Vec<f32> = all float 4,
        int32_data: Vec<i32> = all int32 5,
        int64_data: Vec<i64> = all int64 7,
        name: String = one string 8,
        raw_data: Vec<u8> = one bytes 9,
        double_data: Vec<f64> = all double 10,
        external_data: Vec<EntryMessage> = all message 13,
        /// 1: the numbers are in another file.
        data_location: i32 = one int32 14,
    }
    /// `StringStringEntryProto`.
    EntryMessage {
        key: String = one string 1,
        value: String = one string 2,
    }
    /// `ValueInfoProto`.
    ValueMessage {
        name: String = one string 1,
        kind: Option<TypeMessage> = maybe message 2,
    }
    /// `TypeProto`.
    TypeMessage {
        tensor: Option<TensorType> = maybe message 1,
    }
    /// `TypeProto.Tensor`.
    TensorType {
        /// 1: numbers of single precision.
        elem_type: i32 = one int32 1,
        shape: Option<ShapeMessage> = maybe message 2,
    }
    /// `TensorShapeProto`.
    ShapeMessage {
        dim: Vec<DimMessage> = all message 1,
    }
    /// `TensorShapeProto.Dimension`; 0: any size.
    DimMessage {
        value: i64 = one int64 1,
        /// A name for any size.
        param: String = one string 2,
    }
}

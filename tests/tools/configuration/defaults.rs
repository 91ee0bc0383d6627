//! Defaults of keys in lists of tables, read from the source: no value of such a table is
//! there to be asked.

use super::types::{Def, Field, Shape, Types, name};
use std::path::Path;
use syn::{Expr, Lit, Type};

/// The value of a key that is left out, as it would be written; nothing where it is needed.
/// `Some("")` for one that is simply not there.
pub fn of(types: &Types, owner: &Def, field: &Field) -> Option<String> {
    if let Some(Some(function)) = &field.default {
        let found = types.function(function, &owner.file);
        let found = found.unwrap_or_else(|| panic!("{}: {function}", owner.name));
        return Some(value(types, found, &owner.file));
    }
    if owner.all_default {
        if let Some(Expr::Struct(s)) = types.default_of(owner) {
            let own = |f: &&syn::FieldValue| matches!(&f.member, syn::Member::Named(n) if *n == field.key);
            if let Some(given) = s.fields.iter().find(own) {
                return Some(value(types, &given.expr, &owner.file));
            }
        }
        return Some(of_type(types, &field.ty, &owner.file));
    }
    let optional = name(&field.ty).is_some_and(|n| n == "Option");
    (optional || field.default.is_some()).then(|| of_type(types, &field.ty, &owner.file))
}

/// `Default::default` of a type.
fn of_type(types: &Types, ty: &Type, from: &Path) -> String {
    let name = name(ty).unwrap_or_default();
    match name.as_str() {
        "Option" => String::new(),
        "bool" => "false".into(),
        "f64" | "f32" => "0.0".into(),
        "u32" | "u64" | "usize" | "i64" | "u8" | "i32" => "0".into(),
        "String" => "\"\"".into(),
        "Vec" => "[]".into(),
        "BTreeMap" | "Table" => "{}".into(),
        _ => {
            let def = types.find(&name, from);
            let def = def.unwrap_or_else(|| panic!("no type {name} for {}", from.display()));
            if let Some(expr) = types.default_of(def) {
                return match expr {
                    Expr::Struct(_) => String::new(),
                    _ => value(types, expr, &def.file),
                };
            }
            match &def.shape {
                Shape::Enum(variants) => {
                    let default = variants.iter().find(|v| v.is_default);
                    format!("\"{}\"", default.unwrap_or_else(|| panic!("{name}")).word)
                }
                Shape::Text(Some(word)) => format!("\"{word}\""),
                Shape::Text(None) => panic!("{name}: a text without a default"),
                Shape::Struct(_) => String::new(),
            }
        }
    }
}

/// An expression of the source as a file would have it.
fn value(types: &Types, expr: &Expr, from: &Path) -> String {
    match expr {
        Expr::Lit(l) => match &l.lit {
            Lit::Str(s) => format!("{:?}", s.value()),
            Lit::Int(i) => i.base10_digits().to_string(),
            Lit::Float(f) => f.base10_digits().to_string(),
            Lit::Bool(b) => b.value.to_string(),
            _ => unknown(expr, from),
        },
        Expr::Unary(u) => format!("-{}", value(types, &u.expr, from)),
        Expr::MethodCall(c) if c.method == "into" => value(types, &c.receiver, from),
        Expr::Path(p) => {
            let parts: Vec<_> = p.path.segments.iter().map(|s| s.ident.to_string()).collect();
            match parts.as_slice() {
                [none] if none == "None" => String::new(),
                [.., consts, pi] if consts == "consts" && pi == "PI" => {
                    format!("{:?}", std::f64::consts::PI)
                }
                [constant] if types.function(constant, from).is_some() => types
                    .function(constant, from)
                    .map_or_else(String::new, |e| value(types, e, from)),
                [ty, variant] => {
                    let def = types.find(ty, from);
                    match def.map(|d| &d.shape) {
                        Some(Shape::Enum(all)) => {
                            let found = all.iter().find(|v| v.name == *variant);
                            format!("\"{}\"", found.unwrap_or_else(|| panic!("{variant}")).word)
                        }
                        _ => unknown(expr, from),
                    }
                }
                _ => unknown(expr, from),
            }
        }
        // A variant around a value, or a default.
        Expr::Call(c) => match (&*c.func, c.args.first()) {
            (_, Some(inner)) => value(types, inner, from),
            (Expr::Path(p), None) => {
                let segments: Vec<_> = p.path.segments.iter().collect();
                match segments.as_slice() {
                    [ty, last] if last.ident == "default" => {
                        let ty = &ty.ident;
                        of_type(types, &syn::parse_quote!(#ty), from)
                    }
                    [last] => {
                        let name = last.ident.to_string();
                        let found = types.function(&name, from);
                        value(types, found.unwrap_or_else(|| panic!("{name}")), from)
                    }
                    [_, last] if last.ident == "new" => "[]".into(),
                    _ => unknown(expr, from),
                }
            }
            _ => unknown(expr, from),
        },
        Expr::Array(a) => {
            let all: Vec<_> = a.elems.iter().map(|e| value(types, e, from)).collect();
            format!("[{}]", all.join(", "))
        }
        _ => unknown(expr, from),
    }
}

fn unknown(expr: &Expr, from: &Path) -> String {
    panic!("{}: a default that defaults.rs cannot print: {expr:?}", from.display())
}

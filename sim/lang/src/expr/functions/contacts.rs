//! Contacts: forces, places and directions of what touches.

use crate::expr::checker::{Checker, Steps};
use crate::expr::dag::{Id, Node, Seen, Source};
use crate::expr::element::{Element, ElementKind};
use crate::expr::elements::geoms_of;
use crate::expr::error::ExprError;
use crate::expr::function::{Body, Call, Function};
use crate::expr::ops::Op;
use crate::expr::signature::{Kind, Param, Rule, one, optional};
use crate::expr::unit::Unit;
use crate::expr::value::Value;
use ostler_model::{ContactReading, ContactSensor};

const TOUCHING: &[Param] = &[one("name", Kind::Touch), optional("with", Kind::Touch)];

/// The table.
pub(crate) const TABLE: &[Function] = &[
    Function {
        name: "contact_force",
        params: TOUCHING,
        gives: "1 each",
        rule: Rule::Fixed("N"),
        doc: "sum of normal contact forces, mean over the physics steps of the control step: of each element of `name` with anything, or with what `with` means, all of it together. A body's contacts are those of its own geoms, subtree(body)'s those of all that hangs on it too",
        body: Body::Special(|c, call| Ok(Value::vector(forces(c, call)?, unit("N")))),
    },
    Function {
        name: "contact",
        params: TOUCHING,
        gives: "bool each",
        rule: Rule::Fixed("-"),
        doc: "whether the element touches anything, or what `with` means: contact_force above zero",
        body: Body::Special(|c, call| {
            let zero = c.dag.constant(0.0);
            let forces = forces(c, call)?.into_iter();
            let touching = forces.map(|force| c.dag.two(Op::Lt, zero, force)).collect();
            Ok(Value::truth(touching))
        }),
    },
    Function {
        name: "net_contact_force",
        params: TOUCHING,
        gives: "3 each",
        rule: Rule::Fixed("N"),
        doc: "force that contacts exert on the element, friction included, in the world's axes; mean over the physics steps",
        body: Body::Special(|c, call| read(c, call, ContactReading::Net, unit("N"))),
    },
    Function {
        name: "contact_pos",
        params: TOUCHING,
        gives: "3 each",
        rule: Rule::Fixed("m"),
        doc: "centre of pressure in the world: the contacts' places, weighted by their normal forces; zero without contact",
        body: Body::Special(|c, call| {
            let places = readings(c, call, ContactReading::Place)?;
            let forces = readings(c, call, ContactReading::Force)?;
            let (zero, one) = (c.dag.constant(0.0), c.dag.constant(1.0));
            let mut ids = Vec::new();
            for (place, force) in places.iter().zip(forces) {
                let touching = c.dag.two(Op::Lt, zero, force[0]);
                let by = c.dag.select(touching, force[0], one);
                ids.extend(place.iter().map(|&x| c.dag.div(x, by)));
            }
            Ok(Value::vector(ids, unit("m")))
        }),
    },
    Function {
        name: "contact_normal",
        params: TOUCHING,
        gives: "3 each",
        rule: Rule::Fixed("-"),
        doc: "direction in which contacts push the element, in the world: their normals, weighted by their forces, at unit length; zero without contact",
        body: Body::Special(|c, call| {
            let (zero, one) = (c.dag.constant(0.0), c.dag.constant(1.0));
            let mut ids = Vec::new();
            for normal in readings(c, call, ContactReading::Normal)? {
                let square = c.dag.dot(&normal, &normal);
                let length = c.dag.one(Op::Sqrt, square);
                let some = c.dag.two(Op::Lt, zero, length);
                let by = c.dag.select(some, length, one);
                ids.extend(normal.iter().map(|&x| c.dag.div(x, by)));
            }
            Ok(Value::vector(ids, Unit::NONE))
        }),
    },
    Function {
        name: "substeps",
        params: &[one("conditions", Kind::Counted)],
        gives: "one per condition",
        rule: Rule::Fixed("-"),
        doc: "physics steps of the control step in which the condition held; conditions of contact, and of contact_force above a number",
        body: Body::Special(substeps),
    },
    Function {
        name: "contact_time",
        params: TOUCHING,
        gives: "1 each",
        rule: Rule::Fixed("s"),
        doc: "how long the element has been in contact without a break, up to the last physics step of the control step; 0 without contact, and where an episode begins. A contact counts that is there, whether it presses or not: `current_contact_time` of mjlab (of Isaac Lab: where it presses with more than its threshold)",
        body: Body::Special(|c, call| read(c, call, ContactReading::TimeIn, Unit::SECOND)),
    },
    Function {
        name: "air_time",
        params: TOUCHING,
        gives: "1 each",
        rule: Rule::Fixed("s"),
        doc: "the same without contact: `current_air_time`",
        body: Body::Special(|c, call| read(c, call, ContactReading::TimeOut, Unit::SECOND)),
    },
    Function {
        name: "latest",
        params: &[one("x", Kind::Latest)],
        gives: "as x",
        rule: Rule::Keep,
        doc: "x with the contacts of the last physics step, where it would be their mean over the control step: latest(net_contact_force(BODY)) is `net_forces_w` of Isaac Lab; minus latest(net_contact_force(foot, floor)), what the foot exerts, `force` of mjlab's contact sensor (`netforce`)",
        body: Body::Special(|c, call| c.value(call, 0)),
    },
    Function {
        name: "subtree",
        params: &[one("body", Kind::Body)],
        gives: "a name",
        rule: Rule::Fixed("-"),
        doc: "a body and all that hangs on it, as one element of the functions above",
        body: Body::Special(|_, call| {
            let why = "`subtree` is a name, not a value";
            let help = "contact_force(subtree(BODY), floor), for example";
            Err(ExprError::new(call.span.clone(), why).help(help))
        }),
    },
];

fn unit(text: &str) -> Unit {
    Unit::parse(text).unwrap_or(Unit::Any)
}

/// A reading of each element, as it is.
fn read(
    c: &mut Checker<'_>,
    call: &Call,
    reads: ContactReading,
    unit: Unit,
) -> Result<Value, ExprError> {
    Ok(Value::vector(readings(c, call, reads)?.concat(), unit))
}

/// Normal forces of each element.
fn forces(c: &mut Checker<'_>, call: &Call) -> Result<Vec<Id>, ExprError> {
    let alone = call.args.len() == 1;
    let known = |e: &Element| e.kind != ElementKind::Subtree;
    if alone && c.steps == Steps::Mean && call.elements_of(0).iter().all(known) {
        // Every world has the forces of single geoms.
        let each = call.elements_of(0).to_vec().into_iter();
        return Ok(each.map(|e| touch(c, e)).collect());
    }
    Ok(readings(c, call, ContactReading::Force)?.concat())
}

fn touch(c: &mut Checker<'_>, e: Element) -> Id {
    c.reads(e);
    let forces: Vec<Id> = (geoms_of(c.scope.model, e).into_iter())
        .map(|g| c.dag.load(Source::World(Seen::ContactForce), g))
        .collect();
    match forces[..] {
        [] => c.dag.constant(0.0),
        [one] => one,
        _ => c.dag.sum(&forces),
    }
}

/// What a sensor of each element of the first argument reads.
fn readings(
    c: &mut Checker<'_>,
    call: &Call,
    reads: ContactReading,
) -> Result<Vec<Vec<Id>>, ExprError> {
    let model = c.scope.model;
    let with: Vec<usize> = match call.args.len() {
        1 => (0..model.geoms.len()).collect(),
        _ => {
            let each = call.elements_of(1).iter();
            let mut all: Vec<usize> = each.flat_map(|e| geoms_of(model, *e)).collect();
            all.sort_unstable();
            all.dedup();
            all
        }
    };
    let mut all = Vec::new();
    let timed = matches!(reads, ContactReading::TimeIn | ContactReading::TimeOut);
    let last = c.steps == Steps::Last && !timed;
    c.latest |= last;
    for e in call.elements_of(0).to_vec() {
        c.reads(e);
        let found = c.scope.readings.read(ContactSensor {
            of: geoms_of(model, e),
            with: with.clone(),
            reads,
            last,
        });
        let rows = found.ok_or_else(|| {
            ExprError::new(call.span.clone(), "too many contacts are read")
                .help("at most 512 pairs of an element and what it touches")
        })?;
        let load = |row| c.dag.load(Source::World(Seen::ContactData), row);
        all.push(rows.map(load).collect());
    }
    Ok(all)
}

fn substeps(c: &mut Checker<'_>, call: &Call) -> Result<Value, ExprError> {
    let conditions = c.value(call, 0)?;
    let refuse = || {
        let why = "`substeps` counts contacts alone";
        ExprError::new(call.span_of(0), why)
            .help("substeps(contact_force(A, B) > 10), or substeps(contact(A, B))")
    };
    let mut counts = Vec::new();
    for id in conditions.ids() {
        let node = |id: Id| c.dag.nodes().get(id as usize).copied();
        let Some(Node::Op(op @ (Op::Lt | Op::Le), [limit, force, _])) = node(id) else {
            return Err(refuse());
        };
        let Some(Node::Load(Source::World(Seen::ContactData), row)) = node(force) else {
            return Err(refuse());
        };
        let Some(limit) = c.dag.value(limit).filter(|x| x.is_finite()) else {
            let why = "`substeps` compares with a number that is written here";
            return Err(ExprError::new(call.span_of(0), why)
                .help("parameters, commands and the state can change"));
        };
        // A force that is equal counts where the condition says so.
        let above = match op {
            Op::Lt => limit,
            _ => limit.next_down(),
        };
        let row = c.scope.readings.count(row as usize, f64::from(above));
        let row = row.ok_or_else(refuse)?;
        counts.push(c.dag.load(Source::World(Seen::ContactData), row));
    }
    Ok(Value::vector(counts, Unit::NONE))
}

//! Several agents.

use crate::expr::error::ExprError;
use crate::expr::function::{Body, Function};
use crate::expr::signature::{Kind, Rule, one};

/// Functions of lists of parts.
pub(crate) const LISTS: &[Function] = &[Function {
    name: "each",
    params: &[one("list", Kind::Word), one("expr", Kind::Value)],
    gives: "expr of every entry",
    rule: Rule::Each("as the expression"),
    doc: "the expression once per entry of a list of `[task.names]`, one after the other; the list's name in braces stands for the entry in it",
    // Its second argument is checked once per entry, before this could be asked.
    body: Body::Special(|_, call| Err(ExprError::new(call.span.clone(), "`each` of nothing"))),
}];

/// The table.
pub(crate) const TABLE: &[Function] = &[
    Function {
        name: "each",
        params: &[one("expr", Kind::Value)],
        gives: "expr of every agent",
        rule: Rule::Each("as the expression"),
        doc: "the expression once per agent, in the order of `agents.names`, one after the other; `{each}` in it stands for that agent's name",
        // Its argument is checked once per agent, before this could be asked.
        body: Body::Special(|_, call| Err(ExprError::new(call.span.clone(), "`each` of nothing"))),
    },
    Function {
        name: "others",
        params: &[one("expr", Kind::Value)],
        gives: "expr of every other agent",
        rule: Rule::Each("as the expression"),
        doc: "the same for all agents but this one, `{other}` standing for the name: first those that share its policy, cyclically after it, then the rest in the order of `agents.names`",
        body: Body::Special(|_, call| {
            Err(ExprError::new(call.span.clone(), "`others` of nothing"))
        }),
    },
    Function {
        name: "agent_index",
        params: &[],
        gives: "1",
        rule: Rule::Fixed("-"),
        doc: "this agent's place in `agents.names`, from 0",
        body: Body::Special(|c, call| c.agent_index(&call.span)),
    },
    Function {
        name: "agent_id",
        params: &[],
        gives: "one per agent",
        rule: Rule::Fixed("-"),
        doc: "1 at this agent's place in `agents.names`, 0 elsewhere",
        body: Body::Special(|c, call| c.agent_id(&call.span)),
    },
];

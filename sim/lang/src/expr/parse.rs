//! Tokens -> syntax tree. Precedence, loosest first:
//! `? :`, `or`, `and`, `not`, comparison, `+ -`, `* /`, sign and `!`, `^`, `.x [i]`.

use super::error::ExprError;
use super::functions;
use super::lex::{Spanned, Token, lex};
use super::names::unknown_motion;
use super::tree::{Binary, Node, NodeRef, Tree};
use std::ops::Range;

/// Longest expression in bytes.
pub(crate) const MAX_LEN: usize = 8192;
/// Deepest nesting of brackets, calls and operators.
pub(crate) const MAX_DEPTH: usize = 64;

/// Parses a whole text.
pub(crate) fn parse(text: &str) -> Result<(Tree<'_>, NodeRef), ExprError> {
    if text.len() > MAX_LEN {
        return Err(ExprError::new(
            0..text.len(),
            format!("this expression has {} bytes", text.len()),
        )
        .help(format!("at most {MAX_LEN}; split it into several terms")));
    }
    let mut p =
        Parser { tokens: lex(text)?, at: 0, end: text.len(), depth: 0, tree: Tree::default() };
    if p.tokens.is_empty() {
        return Err(ExprError::new(0..text.len(), "the expression is empty"));
    }
    let root = p.expression()?;
    match p.peek() {
        None => Ok((p.tree, root)),
        Some((Token::Sign(")"), span)) => {
            Err(ExprError::new(span.clone(), "this bracket closes nothing"))
        }
        Some((token, span)) => {
            let what = format!("expected an operator or the end, found {}", describe(token));
            let error = ExprError::new(span.clone(), what);
            let before = p.tokens.get(p.at.wrapping_sub(1)).map(|token| &token.0);
            Err(match (before, super::foreign::lookup("not")) {
                (Some(Token::Name("not")), Some(advice)) => error.help(advice),
                _ => pythons(token, error),
            })
        }
    }
}

/// With the form here of what Python writes at this place.
fn pythons(token: &Token<'_>, error: ExprError) -> ExprError {
    match token {
        Token::Name("if") => {
            error.help("a choice is written condition ? a : b, or if(condition, a, b)")
        }
        Token::Name("is" | "in" | "not") => error.help("compare with == or !="),
        _ => error,
    }
}

fn describe(token: &Token<'_>) -> String {
    match token {
        Token::Number(n) => format!("the number {n}"),
        Token::Name(n) => format!("`{n}`"),
        Token::Text(t) => format!("\"{t}\""),
        Token::Sign(s) => format!("`{s}`"),
    }
}

struct Parser<'a> {
    tokens: Vec<Spanned<'a>>,
    at: usize,
    end: usize,
    depth: usize,
    tree: Tree<'a>,
}

/// Levels of the left-associative binary operators, loosest first.
const LEVELS: [&[(&str, Binary)]; 4] = [
    &[("or", Binary::Or)],
    &[("and", Binary::And)],
    &[("+", Binary::Add), ("-", Binary::Sub)],
    &[("*", Binary::Mul), ("/", Binary::Div)],
];
const COMPARISONS: [(&str, Binary); 6] = [
    ("<", Binary::Lt),
    ("<=", Binary::Le),
    (">", Binary::Gt),
    (">=", Binary::Ge),
    ("==", Binary::Eq),
    ("!=", Binary::Ne),
];

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&Spanned<'a>> {
        self.tokens.get(self.at)
    }

    fn sign(&self) -> Option<&'static str> {
        match self.peek() {
            Some((Token::Sign(s), _)) => Some(s),
            _ => None,
        }
    }

    fn span(&self) -> Range<usize> {
        self.peek().map_or(self.end..self.end, |t| t.1.clone())
    }

    /// Takes `sign` if it comes next.
    fn take(&mut self, sign: &str) -> Option<Range<usize>> {
        (self.sign() == Some(sign)).then(|| {
            self.at += 1;
            self.tokens[self.at - 1].1.clone()
        })
    }

    fn expect(
        &mut self,
        sign: &str,
        opened: &Range<usize>,
        what: &str,
    ) -> Result<Range<usize>, ExprError> {
        if let Some(span) = self.take(sign) {
            return Ok(span);
        }
        Err(match self.peek() {
            None => ExprError::new(opened.clone(), format!("{what} is not closed"))
                .help(format!("add `{sign}`")),
            Some((token, span)) => {
                let what = format!("expected `{sign}`, found {}", describe(token));
                pythons(token, ExprError::new(span.clone(), what))
            }
        })
    }

    fn push(&mut self, node: Node<'a>, span: Range<usize>) -> NodeRef {
        self.tree.nodes.push((node, span));
        self.tree.nodes.len() - 1
    }

    fn span_of(&self, node: NodeRef) -> Range<usize> {
        self.tree.nodes[node].1.clone()
    }

    /// Runs one nested rule, refusing what would overflow the stack here or in
    /// the passes over the tree.
    fn nested(
        &mut self,
        rule: impl FnOnce(&mut Self) -> Result<NodeRef, ExprError>,
    ) -> Result<NodeRef, ExprError> {
        if self.depth == MAX_DEPTH {
            return Err(ExprError::new(self.span(), "this expression is nested too deeply")
                .help(format!("at most {MAX_DEPTH} levels; split it into several terms")));
        }
        self.depth += 1;
        let result = rule(self);
        self.depth -= 1;
        result
    }

    fn expression(&mut self) -> Result<NodeRef, ExprError> {
        self.nested(|p| {
            let cond = p.level(0)?;
            let Some(mark) = p.take("?") else {
                return Ok(cond);
            };
            let yes = p.expression()?;
            p.expect(":", &mark, "this `?`")?;
            let no = p.expression()?;
            let span = p.span_of(cond).start..p.span_of(no).end;
            Ok(p.push(Node::If { cond, yes, no }, span))
        })
    }

    fn binary(
        &mut self,
        op: Binary,
        op_span: Range<usize>,
        left: NodeRef,
        right: NodeRef,
    ) -> NodeRef {
        let span = self.span_of(left).start..self.span_of(right).end;
        let node = Node::Binary { op, op_span, left, right };
        self.push(node, span)
    }

    fn level(&mut self, level: usize) -> Result<NodeRef, ExprError> {
        let Some(operators) = LEVELS.get(level) else {
            return self.unary();
        };
        let next = |p: &mut Self| {
            if level == 1 { p.negation() } else { p.level(level + 1) }
        };
        let mut left = next(self)?;
        while let Some((_, op)) = self.sign().and_then(|s| operators.iter().find(|o| o.0 == s)) {
            let op_span = self.span();
            self.at += 1;
            let right = next(self)?;
            left = self.binary(*op, op_span, left, right);
        }
        Ok(left)
    }

    /// `not a`, below the comparisons as in Python.
    fn negation(&mut self) -> Result<NodeRef, ExprError> {
        if let Some((Token::Name("not"), span)) = self.peek().cloned() {
            self.at += 1;
            let of = self.nested(Self::negation)?;
            let span = span.start..self.span_of(of).end;
            return Ok(self.push(Node::Not(of), span));
        }
        let mut left = self.level(2)?;
        let mut seen = false;
        while let Some((_, op)) = self.sign().and_then(|s| COMPARISONS.iter().find(|o| o.0 == s)) {
            let op_span = self.span();
            if seen {
                return Err(ExprError::new(op_span, "comparisons cannot be chained")
                    .help("write between(x, low, high), or join two comparisons with `and`"));
            }
            seen = true;
            self.at += 1;
            let right = self.level(2)?;
            left = self.binary(*op, op_span, left, right);
        }
        Ok(left)
    }

    /// Sign and `!`, looser than `^`: `-x^2` is `-(x^2)`.
    fn unary(&mut self) -> Result<NodeRef, ExprError> {
        let start = self.span().start;
        for sign in ["-", "not", "+"] {
            if self.take(sign).is_some() {
                let of = self.nested(Self::unary)?;
                let span = start..self.span_of(of).end;
                return Ok(match sign {
                    "-" => self.push(Node::Negate(of), span),
                    "not" => self.push(Node::Not(of), span),
                    _ => of,
                });
            }
        }
        let base = self.postfix()?;
        let Some(op_span) = self.take("^") else {
            return Ok(base);
        };
        let power = self.nested(Self::unary)?;
        Ok(self.binary(Binary::Pow, op_span, base, power))
    }

    fn postfix(&mut self) -> Result<NodeRef, ExprError> {
        let mut of = self.primary()?;
        let mut links = 0;
        loop {
            let opened = self.span();
            let node = if self.take(".").is_some() {
                self.member(of, &opened)?
            } else if self.take("[").is_some() {
                self.index(of, &opened)?
            } else {
                return Ok(of);
            };
            links += 1;
            if links > 8 {
                return Err(ExprError::new(opened, "too many `.` and `[ ]` in a row"));
            }
            let span = self.span_of(of).start..self.tokens[self.at - 1].1.end;
            of = self.push(node, span);
        }
    }

    fn member(&mut self, of: NodeRef, dot: &Range<usize>) -> Result<Node<'a>, ExprError> {
        let Some((Token::Name(name), name_span)) = self.peek().cloned() else {
            return Err(ExprError::new(dot.clone(), "a name should follow the `.`")
                .help("components are .x .y .z .w or [0], [1], ..."));
        };
        self.at += 1;
        let of_motion = matches!(self.tree.nodes[of].0, Node::Name("motion"));
        if let Some(opened) = of_motion.then(|| self.take("(")).flatten() {
            // Functions of the reference motion.
            let args = self.list(")", &opened, "this call")?;
            let name_span = self.span_of(of).start..name_span.end;
            return match functions::of_motion(name) {
                Some(f) => Ok(Node::Call { name: f.name, name_span, args }),
                None => Err(unknown_motion(name, &name_span)),
            };
        }
        if self.sign() == Some("(") {
            let module = matches!(&self.tree.nodes[of].0, Node::Name(n)
                if ["np", "numpy", "torch", "jnp", "math", "jp"].contains(n));
            let span = self.span_of(of).start..name_span.end;
            return Err(if module {
                ExprError::new(span, "functions have no module in front").help(foreign_call(name))
            } else {
                ExprError::new(span, "values have no methods")
                    .help(format!("put the value inside: {name}(...)"))
            });
        }
        Ok(Node::Member { of, name, name_span })
    }

    fn index(&mut self, of: NodeRef, opened: &Range<usize>) -> Result<Node<'a>, ExprError> {
        let from = self.whole()?;
        let slice = self.take(":").is_some();
        let to = if slice { self.whole()? } else { None };
        let closed = match self.peek() {
            Some((Token::Sign("]"), _)) | None => self.expect("]", opened, "this `[`")?,
            Some((token, span)) => {
                return Err(ExprError::new(
                    span.clone(),
                    format!("expected a whole number, found {}", describe(token)),
                )
                .help("an index is written [2], a slice [1:3], [2:] or [:2]"));
            }
        };
        let index_span = opened.start..closed.end;
        match (slice, from) {
            (true, _) => Ok(Node::Slice { of, from, to, index_span }),
            (false, Some(at)) => Ok(Node::Index { of, at, index_span }),
            (false, None) => Err(ExprError::new(index_span, "which component?")
                .help("an index is written [2], a slice [1:3], [2:] or [:2]")),
        }
    }

    /// A whole number with sign, if one comes next.
    fn whole(&mut self) -> Result<Option<i64>, ExprError> {
        let before = self.at;
        let negative = self.take("-").is_some();
        let Some((Token::Number(n), span)) = self.peek().cloned() else {
            self.at = before;
            return Ok(None);
        };
        if n.fract() != 0.0 || n > 1e6 {
            return Err(ExprError::new(span, format!("{n} is not an index"))
                .help("an index is a whole number; the first component is [0]"));
        }
        self.at += 1;
        Ok(Some(if negative { -(n as i64) } else { n as i64 }))
    }

    /// Comma-separated expressions up to `close`.
    fn list(
        &mut self,
        close: &str,
        opened: &Range<usize>,
        what: &str,
    ) -> Result<Vec<NodeRef>, ExprError> {
        let mut items = Vec::new();
        if self.take(close).is_some() {
            return Ok(items);
        }
        loop {
            items.push(self.expression()?);
            if self.take(",").is_some() {
                // A comma may follow the last entry.
                if self.take(close).is_some() {
                    return Ok(items);
                }
                continue;
            }
            match self.peek() {
                Some((Token::Sign(s), _)) if *s == close => {}
                None => {}
                Some((token, span)) => {
                    let what = format!("expected `,` or `{close}`, found {}", describe(token));
                    let before = self.tokens.get(self.at.wrapping_sub(1)).map(|token| &token.0);
                    let error = pythons(token, ExprError::new(span.clone(), what));
                    return Err(match (before, token, &error.help) {
                        (Some(Token::Name(a)), Token::Name(b), None) => error.help(format!(
                            "a name with a blank stands in quotes, \"{a} {b}\"; the word for \
                             its kind is left out"
                        )),
                        _ => error,
                    });
                }
            }
            self.expect(close, opened, what)?;
            return Ok(items);
        }
    }

    fn primary(&mut self) -> Result<NodeRef, ExprError> {
        let Some((token, span)) = self.peek().cloned() else {
            return Err(ExprError::new(self.end..self.end, "the expression ends too early")
                .help("a value is missing here"));
        };
        self.at += 1;
        match token {
            Token::Number(n) => Ok(self.push(Node::Number(n), span)),
            Token::Text(t) => Ok(self.push(Node::Text(t), span)),
            Token::Sign("(") => {
                let inner = self.expression()?;
                let closed = self.expect(")", &span, "this bracket")?;
                // Errors about the value should underline the brackets too.
                self.tree.nodes[inner].1 = span.start..closed.end;
                Ok(inner)
            }
            Token::Sign("[") => {
                let items = self.list("]", &span, "this list")?;
                let span = span.start..self.tokens[self.at - 1].1.end;
                if items.is_empty() {
                    return Err(ExprError::new(span, "a vector needs at least one component"));
                }
                Ok(self.push(Node::List(items), span))
            }
            Token::Name(name) => {
                let Some(opened) = self.take("(") else {
                    return Ok(self.push(Node::Name(name), span));
                };
                let args = self.list(")", &opened, "this call")?;
                let whole = span.start..self.tokens[self.at - 1].1.end;
                let node = Node::Call { name, name_span: span, args };
                Ok(self.push(node, whole))
            }
            Token::Sign(s) => {
                let error = ExprError::new(span, format!("expected a value, found `{s}`"));
                let before = self.tokens.get(self.at.wrapping_sub(2)).map(|token| &token.0);
                Err(match (before, s) {
                    (Some(Token::Sign("*")), ")" | "," | "]") => {
                        error.help("a pattern stands in quotes: joint_pos(\"*_knee\")")
                    }
                    _ => error,
                })
            }
        }
    }
}

fn foreign_call(name: &str) -> String {
    super::foreign::lookup(name).map_or_else(|| format!("write {name}(...)"), str::to_string)
}

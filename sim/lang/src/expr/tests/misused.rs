//! Messages for mistakes in lists of parts and named expressions, and in their uses.

use super::define::{task, within};
use super::fixture::World;
use crate::config::ConfigError;
use crate::expr::{Definitions, ExprError, Program};

/// What is wrong with the definitions themselves.
#[test]
fn mistakes_in_definitions_name_their_place_and_a_remedy() {
    let world = World::new(1, 1);
    for (text, path, message, help) in [
        ("[names]\nfoot = []", "task.names.foot", "the list is empty", "foot = [\"FL\", \"FR\"]"),
        (
            "[names]\nfoot = [\"a\", \"a\"]",
            "task.names.foot[1]",
            "\"a\" is in the list already",
            "once",
        ),
        (
            "[names]\nfoot = [\"foot_1\", \"foot_*\"]",
            "task.names.foot[1]",
            "\"foot_1\" is in the list already",
            "",
        ),
        ("[names]\nfoot = [\"\"]", "task.names.foot[0]", "\"\" cannot be an entry", ""),
        ("[names]\nfoot = [\"{leg}\"]", "task.names.foot[0]", "\"{leg}\" cannot be an entry", ""),
        (
            "[names]\nfoot = [\"fooot_*\"]",
            "task.names.foot[0]",
            "nothing of the robot fits \"fooot_*\"",
            "did you mean \"foot_2\"?",
        ),
        (
            "[names]\nfoot = [\"zzz*\"]",
            "task.names.foot[0]",
            "nothing of the robot fits",
            "a pattern fits bodies",
        ),
        (
            "[names]\nnorm = [\"a\"]",
            "task.names.norm",
            "\"norm\" is a function of the language",
            "another name",
        ),
        (
            "[names]\ncommand = [\"a\"]",
            "task.names.command",
            "\"command\" is a word of the language",
            "",
        ),
        (
            "[names]\neach = [\"a\"]",
            "task.names.each",
            "\"each\" is a function of the language",
            "",
        ),
        ("[names]\nagent = [\"a\"]", "task.names.agent", "an agent's name, or stands for one", ""),
        (
            "[names]\n\"a-b\" = [\"a\"]",
            "task.names.a-b",
            "cannot be the name of a list",
            "letters, digits and _",
        ),
        ("[names]\n2nd = [\"a\"]", "task.names.2nd", "cannot be the name of a list", ""),
        (
            "[let]\nnorm = \"1\"",
            "task.let.norm",
            "\"norm\" is a function of the language",
            "give the value another name",
        ),
        ("[let]\nfoot_1 = \"1\"", "task.let.foot_1", "\"foot_1\" is a body of the robot", ""),
        (
            "[let]\nmotor_1 = \"1\"",
            "task.let.motor_1",
            "\"motor_1\" is an actuator of the robot",
            "",
        ),
        ("[names]\na = [\"x\"]\n[let]\na = \"1\"", "task.let.a", "is a list of [task.names]", ""),
        ("[let]\nx = \"1\"\n\"x(y)\" = \"y\"", "task.let.x(y)", "\"x\" is defined twice", ""),
        ("[let]\nx = \"1 +\"", "task.let.x", "the expression ends too early", ""),
        ("[let]\nx = \"\"", "task.let.x", "the expression is empty", ""),
        ("[let]\n\"f(x\" = \"x\"", "task.let.f(x", "the bracket does not end", "NAME(x, y)"),
        ("[let]\n\"f()\" = \"1\"", "task.let.f()", "without parameters", ""),
        ("[let]\n\"f(x, x)\" = \"x\"", "task.let.f(x, x)", "two parameters are called \"x\"", ""),
        ("[let]\n\"f(1)\" = \"1\"", "task.let.f(1)", "\"1\" cannot be a parameter's name", ""),
        ("[let]\n\"f(x, y)\" = \"x\"", "task.let.f(x, y)", "the parameter \"y\" is not used", ""),
        (
            "[let]\n\"f(x)\" = \"nrom(x)\"",
            "task.let.f(x)",
            "unknown function `nrom`",
            "did you mean norm(v)?",
        ),
        (
            "[let]\na = \"b\"\nb = \"c + 1\"\nc = \"2 * a\"",
            "task.let.a",
            "is defined by itself: a -> b -> c -> a",
            "[[task.state]]",
        ),
        ("[let]\na = \"max(a, 1)\"", "task.let.a", "is defined by itself: a -> a", ""),
        (
            "[let]\n\"f(x)\" = \"x > 0 ? f(x - 1) : 0\"",
            "task.let.f(x)",
            "is defined by itself: f -> f",
            "",
        ),
    ] {
        let task = task(text);
        let error: ConfigError =
            Definitions::new(&world.model, &task, &["red".into()]).unwrap_err();
        assert_eq!(error.path, path, "{text}: {error}");
        assert!(error.message.contains(message), "{text}: {error}");
        assert!(error.help.clone().unwrap_or_default().contains(help), "{text}: {error}");
    }
    // A name of an agent, a command.
    let named = task("[names]\nred = [\"foot_1\"]");
    let error = Definitions::new(&world.model, &named, &["red".into()]).unwrap_err();
    assert!(error.message.contains("\"red\" is an agent's name"), "{error}");
    let named =
        task("[names]\ntwist = [\"foot_1\"]\n[[command]]\nname = \"twist\"\nrange = [[0, 1]]");
    let error = Definitions::new(&world.model, &named, &[]).unwrap_err();
    assert!(error.message.contains("\"twist\" is a command's name"), "{error}");
}

/// Where definitions are used: the expression with the span between « and », message, help;
/// or, of an error in a definition: its key and span there.
#[test]
fn mistakes_in_uses_name_their_place_and_a_remedy() {
    let world = World::new(1, 1);
    let task = task(
        r#"
        [names]
        foot = ["foot_1", "foot_2"]
        wrong = ["foot_1", "foot_3"]
        [let]
        lift = "each(foot, height({foot}))"
        gap = "pos({foot}) - pos(torso)"
        bad = "height(foot_1) + time"
        worse = "2 * bad"
        "near(error2, std)" = "exp(-mean(error2) / std^2)"
        "slow(part)" = "norm(lin_vel({part}))"
        "tall(x, list)" = "x * height(list)"
        "#,
    );
    for (marked, message, help, of) in [
        (
            "height(«{foot}»)",
            "`{foot}` stands for nothing here",
            "inside each(foot, ...) it stands for foot_1, foot_2",
            None,
        ),
        (
            "each(foot, height(foot_«{foto}»))",
            "`{foto}` stands for nothing",
            "did you mean {foot}?",
            None,
        ),
        (
            "height(«{zzzzz}»)",
            "`{zzzzz}` stands for nothing",
            "a list of [task.names] in braces",
            None,
        ),
        (
            "each(«foto», 1)",
            "no list of [task.names] is called \"foto\"",
            "did you mean foot?",
            None,
        ),
        ("each(«[foot_1]», 1)", "takes the name of a list", "write each(LIST, expr)", None),
        (
            "«each(height(foot_1))»",
            "is for tasks of several agents",
            "write each(foot, expr)",
            None,
        ),
        ("norm(«foot»)", "`foot` is a list of names, not a value", "each(foot, ...)", None),
        ("height(«fooot»)", "no body, site or geom called \"fooot\"", "did you mean", None),
        (
            "height(«wrong»)",
            "called \"foot_3\", an entry of task.names.wrong",
            "did you mean",
            None,
        ),
        ("each(wrong, height(«{wrong}»))", "called \"foot_3\"", "did you mean", None),
        ("2 * «lifd»", "unknown name `lifd`", "did you mean `lift`?", None),
        ("«naer»(1, 2)", "unknown function `naer`", "did you mean near(error2, std)?", None),
        ("«near(1)»", "`near` takes 2 arguments, this is 1", "write near(error2, std)", None),
        ("«near»", "`near` needs its arguments", "write near(error2, std)", None),
        ("«lift(1)»", "`lift` is a value, not a function", "write lift alone", None),
        ("near(«time + height(torso)», 2)", "adds [s] to [m]", "", None),
        ("slow(«trso»)", "called \"trso\"", "did you mean \"torso\"?", Some("slow(part)")),
        ("«gap»", "`{foot}` stands for nothing here", "inside each(foot, ...)", Some("gap")),
        ("«bad»", "adds [m] to [s]", "", Some("bad")),
        ("«worse»", "adds [m] to [s]", "", Some("bad")),
        (
            "«near(time, upright(torso))»",
            "`exp` takes a pure number",
            "",
            Some("near(error2, std)"),
        ),
        (
            "«slow(1 + 1)»",
            "`{part}` stands for a name, but the argument is none",
            "write part for its value",
            Some("slow(part)"),
        ),
        ("tall(2, «qpos[0]»)", "`height` takes the name of a body, site or geom", "", None),
        ("lift«[7]»", "there is no component 7", "", None),
    ] {
        let at = marked.find('«').unwrap();
        let text = marked.replace(['«', '»'], "");
        let span = at..marked.find('»').unwrap() - '«'.len_utf8();
        within(&world, &task, |scope| {
            let e: ExprError = Program::compile(&text, scope).unwrap_err();
            assert!(e.message.contains(message), "{text}: {e}");
            assert!(e.help.clone().unwrap_or_default().contains(help), "{text}: {e}");
            assert_eq!(e.of.as_deref(), of, "{text}: {e}");
            match of {
                None => assert_eq!(e.span, span, "{text}: {e}"),
                Some(of) => {
                    let own = scope.defined.lets.iter().find(|l| l.key == of).unwrap();
                    assert!(own.text.get(e.span.clone()).is_some(), "{text}: {e}");
                    let error = e.at("task.reward[0].expr".into());
                    assert_eq!(error.path, format!("task.let.{of}"));
                    assert!(error.message.contains("by task.reward[0].expr"), "{error}");
                }
            }
        });
    }
    // Who used whom.
    let error = within(&world, &task, |scope| Program::compile("worse", scope).unwrap_err());
    assert_eq!(
        (error.of.as_deref(), error.used_by.clone()),
        (Some("bad"), vec!["worse".to_string()])
    );
    assert_eq!(
        error.at("task.reward[0].expr".into()).message,
        "adds [m] to [s] (used by task.let.worse, by task.reward[0].expr)"
    );
}

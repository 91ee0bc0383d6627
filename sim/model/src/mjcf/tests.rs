use super::*;

mod attached;
mod edits;
mod files;
mod lenient;
mod looks;
mod textures;

/// A model with its looks.
fn parse_looks(path: &Path, text: String) -> Result<(Model, Looks), MjcfError> {
    Reading { text: Some(text), looks: true, ..Reading::default() }.read(path)
}

fn load_within(path: &Path, within: Option<&Path>) -> Result<Model, MjcfError> {
    Ok(Reading { within, ..Reading::default() }.read(path)?.0)
}

fn robots() -> Vec<std::path::PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs/robots");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "xml"))
        .collect();
    paths.sort();
    paths
}

fn parse_text(text: impl Into<String>) -> Result<Model, MjcfError> {
    parse(Path::new("robot.xml"), text.into())
}

#[test]
fn shipped_robots_load_and_ignore_nothing() {
    assert!(robots().len() >= 8);
    for path in robots() {
        let model = load(&path).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(model.ignored, [], "{}", path.display());
        assert_eq!(model.qpos0.len(), model.nq);
        assert_eq!(model.sources[0], path);
        // The files of attached models are copied into runs, too.
        let ants = model.sources[1..].iter().filter(|s| s.ends_with("ant.xml"));
        let attached = usize::from(path.ends_with("ant_sumo.xml"));
        assert_eq!((ants.count(), model.sources.len()), (attached, 1 + attached));
    }
}

/// Every mistake is found at its place. `~` marks the place and is taken out;
/// the message has to contain the words.
#[test]
fn errors_name_the_place_and_the_remedy() {
    let body = |inside: &str| {
        format!(
            "<mujoco>\n<worldbody>\n<body>\n<geom size=\"1\"/>\n{inside}\n</body>\n</worldbody>\n</mujoco>"
        )
    };
    let driven = |actuator: &str| {
        format!(
            "<mujoco>\n<worldbody><body><joint name=\"knee\"/><joint name=\"ball\" type=\"ball\"/>\
             <geom size=\"1\"/></body></worldbody>\n<actuator>\n  {actuator}\n</actuator>\n</mujoco>"
        )
    };
    let with = |asset: &str, geom: &str| {
        format!(
            "<mujoco>\n<asset>\n{asset}\n</asset>\n<worldbody><geom {geom}/></worldbody></mujoco>"
        )
    };
    let meshed = |asset: &str| with(asset, "type=\"mesh\" mesh=\"m\"");
    let terrain = |asset: &str| with(asset, "type=\"hfield\" hfield=\"h\"");
    let top = |section: &str| format!("<mujoco>\n\t{section}\n<worldbody/>\n</mujoco>");
    let table = [
        // The file itself.
        ("<mujoco><a>~</b></mujoco>".into(), "not well-formed"),
        ("~<mujoko/>".into(), "starts with <mujoco>"),
        // Unknown names, with the nearest known one.
        (
            body("<geom size=\"1\" ~frction=\"1\"/>"),
            "did you mean \"friction\"?",
        ),
        (body("~<goem size=\"1\"/>"), "did you mean <geom>?"),
        (top("~<optoin/>"), "did you mean <option>?"),
        (
            top("<option ~timstep=\"1\"/>"),
            "did you mean \"timestep\"?",
        ),
        (
            top("<option><flag ~contacts=\"disable\"/></option>"),
            "did you mean \"contact\"?",
        ),
        (
            body("<geom size=\"1\" class=\"~x\"/>"),
            "no default class called \"x\"",
        ),
        (driven("<motor joint=\"~kne\"/>"), "did you mean \"knee\"?"),
        (
            top("<contact><exclude body1=\"~world2\" body2=\"world\"/></contact>"),
            "did you mean \"world\"?",
        ),
        // Values.
        (
            body("<geom size=\"1\" pos=\"0 ~O 0\"/>"),
            "\"O\" in pos is not a number",
        ),
        (
            body("<geom size=\"1\" pos=\"0 0 ~1e999\"/>"),
            "not a finite number",
        ),
        (
            body("<geom size=\"1\" pos=\"0 0 ~nan\"/>"),
            "not a finite number",
        ),
        (
            body("<geom size=\"1\" pos=\"~0 0\"/>"),
            "needs 3 numbers, not 2",
        ),
        (
            body("<geom size=\"1\" friction=\"~1 2 3 4\"/>"),
            "needs 1 to 3 numbers, not 4",
        ),
        (
            body("<geom size=\"1\" contype=\"~1.5\"/>"),
            "not a whole number",
        ),
        (
            body("<geom size=\"1\" contype=\"~-1\"/>"),
            "cannot be negative",
        ),
        (
            body("<geom size=\"1\" group=\"~99999999999\"/>"),
            "too large",
        ),
        (
            body("<geom type=\"~spher\" size=\"1\"/>"),
            "did you mean \"sphere\"?",
        ),
        (body("<joint limited=\"~yes\"/>"), "true, false, auto"),
        (body("<geom size=\"~-1\"/>"), "must be positive"),
        (body("<geom type=\"capsule\" size=\"~1\"/>"), "half-length"),
        (body("<geom size=\"1\" condim=\"~5\"/>"), "1, 3, 4, 6"),
        (
            body("<geom size=\"1\" mass=\"~-2\"/>"),
            "cannot have mass -2 kg",
        ),
        (
            body("<geom size=\"1\" quat=\"1 0 0 0\" ~euler=\"0 0 0\"/>"),
            "keep one",
        ),
        (
            body("<geom type=\"capsule\" size=\"1\" pos=\"1 0 0\" fromto=\"~0 0 0 0 0 1\"/>"),
            "both place the geom",
        ),
        (
            body("<site type=\"box\" size=\"1\" pos=\"1 0 0\" fromto=\"~0 0 0 0 0 1\"/>"),
            "both place the site",
        ),
        (body("<site fromto=\"~0 0 0 0 0 1\"/>"), "set type="),
        (body("<joint axis=\"~0 0 0\"/>"), "no direction"),
        (body("<joint range=\"~1 -1\"/>"), "first must be smaller"),
        (body("<joint armature=\"~-1\"/>"), "cannot be negative"),
        (top("<compiler eulerseq=\"~xyq\"/>"), "three letters"),
        (top("<option timestep=\"~0\"/>"), "must be positive"),
        (top("<option timestep=\"~-0.01\"/>"), "must be positive"),
        (top("<option timestep=\"~inf\"/>"), "not a finite number"),
        (
            top("<option integrator=\"~RK5\"/>"),
            "did you mean \"RK4\"?",
        ),
        (top("<option density=\"~-1\"/>"), "cannot be negative"),
        // Impossible robots.
        (
            "<mujoco><worldbody>~<body name=\"b\"><joint/></body></worldbody></mujoco>".into(),
            "moves but has no mass",
        ),
        (
            body("<body name=\"c\">~<freejoint/><geom size=\"1\"/></body>"),
            "directly in <worldbody>",
        ),
        (
            body("<freejoint/>\n~<joint/>")
                .replace("~<joint", "<joint")
                .replace("<freejoint", "~<freejoint"),
            "no other joint",
        ),
        (
            body("<joint type=\"ball\"/>~<joint/>"),
            "after a ball joint",
        ),
        (
            body("<joint/>~<geom type=\"plane\" size=\"1 1 1\"/>"),
            "cannot move",
        ),
        (
            body("<geom name=\"a\" size=\"1\"/><geom name=\"~a\" size=\"1\"/>"),
            "two <geom> called \"a\"",
        ),
        (
            "<mujoco><worldbody>~<joint/></worldbody></mujoco>".into(),
            "the world cannot move",
        ),
        (
            top("<keyframe><key qpos=\"~1 2\"/></keyframe>"),
            "has 2 numbers, this model needs 0",
        ),
        // Unsupported features, by name.
        (body("<geom type=\"mesh\" mesh=\"~m\"/>"), "no mesh called"),
        (body("<geom type=\"box\" mesh=\"~m\"/>"), "no mesh called"),
        (body("<geom type=\"~mesh\"/>"), "needs mesh"),
        (body("<geom type=\"~sdf\" mesh=\"m\"/>"), "not supported"),
        (
            body("<geom type=\"hfield\" hfield=\"~h\"/>"),
            "no hfield called",
        ),
        (
            meshed("<mesh name=\"m\" file=\"~../m.stl\"/>"),
            "outside the model's folder",
        ),
        (
            meshed("<mesh name=\"m\" file=\"~no_such.stl\"/>"),
            "cannot read",
        ),
        (
            meshed("~<mesh name=\"m\" vertex=\"0 0 0 1 0 0 0 1 0 1 1 0\"/>"),
            "lie in a plane",
        ),
        (
            meshed("<mesh name=\"m\" vertex=\"~0 0\"/>"),
            "multiple of three",
        ),
        (
            meshed("~<mesh name=\"m\" vertex=\"0 0 0 1 0 0 0 1 0 0 0 1\" face=\"0 1 4\"/>"),
            "beyond the 4 there are",
        ),
        (
            meshed("<mesh name=\"m\" file=\"m.obj\" ~vertex=\"0 0 0\"/>"),
            "keep one",
        ),
        (meshed("<mesh name=\"m\" ~builtin=\"sphere\"/>"), "vertices"),
        (
            meshed("<mesh name=\"m\" vertex=\"0\"/>~<mesh name=\"m\"/>"),
            "two <mesh>",
        ),
        (
            terrain("~<hfield name=\"h\" size=\"1 1 1 1\"/>"),
            "nrow and ncol",
        ),
        (
            terrain("<hfield name=\"h\" size=\"~1 1 0 1\" nrow=\"2\" ncol=\"2\"/>"),
            "must be positive",
        ),
        (
            terrain("<hfield name=\"h\" size=\"1 1 1 1\" nrow=\"2\" ncol=\"2\" elevation=\"~1\"/>"),
            "needs 4 numbers",
        ),
        (
            body("<joint springdamper=\"~1 0\"/>"),
            "must both be positive",
        ),
        (body("<joint damping=\"~1 2\"/>"), "polynomial"),
        (body("~<composite type=\"cable\"/>"), "not supported"),
        (
            body("<geom size=\"1\" fluidshape=\"~sphere\"/>"),
            "none, ellipsoid",
        ),
        (
            top("<equality><weld body1=\"~a\"/></equality>"),
            "no body called",
        ),
        (
            top("<equality>~<weld body1=\"world\"/></equality>"),
            "another body2",
        ),
        (
            top("<equality>~<connect body1=\"world\" body2=\"world\"/></equality>")
                .replace("~<connect", "<connect")
                .replace("body2=\"", "body2=\"~"),
            "is also the first",
        ),
        (
            top("<equality><connect site1=\"a\" ~anchor=\"0 0 0\"/></equality>"),
            "do not go together",
        ),
        (
            top("<equality>~<connect site1=\"a\"/></equality>"),
            "needs site2",
        ),
        (top("<equality>~<joint/></equality>"), "needs joint1"),
        (top("<equality>~<flex flex=\"a\"/></equality>"), "rigid"),
        (top("<tendon>~<spatial/></tendon>"), "at least two <site"),
        (
            top("<tendon><spatial><site site=\"~a\"/></spatial></tendon>"),
            "no site called",
        ),
        (
            top(
                "<tendon><spatial><pulley divisor=\"2\"/>~<pulley divisor=\"3\"/></spatial></tendon>",
            ),
            "two pulleys in a row",
        ),
        (
            top("<tendon><spatial><pulley divisor=\"~0\"/></spatial></tendon>"),
            "must be positive",
        ),
        (
            top("<tendon><spatial armature=\"1\">~<geom geom=\"a\"/></spatial></tendon>"),
            "give the joints armature",
        ),
        (top("<tendon>~<fixed/></tendon>"), "at least one <joint"),
        (
            top("<tendon><fixed stiffness=\"~1 2\"/></tendon>"),
            "polynomial",
        ),
        (
            top("<tendon><fixed><joint joint=\"~a\" coef=\"1\"/></fixed></tendon>"),
            "no joint called",
        ),
        (
            top("<tendon><fixed>~<joint joint=\"a\"/></fixed></tendon>"),
            "needs coef",
        ),
        (top("<deformable>~<flex/></deformable>"), "rigid"),
        (top("~<extension/>"), "plugins"),
        (
            top("<option><flag ~override=\"enable\"/></option>"),
            "not supported",
        ),
        (driven("~<muscle joint=\"knee\"/>"), "needs lengthrange"),
        (
            driven("<muscle joint=\"knee\" lengthrange=\"~0 1\"/>")
                .replace("<mujoco>", "<mujoco><compiler><lengthrange useexisting=\"false\"/></compiler>"),
            "useexisting",
        ),
        (
            driven("~<muscle joint=\"knee\" lengthrange=\"0 1\" lmin=\"2\"/>"),
            "lmin is below 1",
        ),
        (
            driven("<muscle joint=\"knee\" lengthrange=\"0 1\" tausmooth=\"~-1\"/>"),
            "cannot be negative",
        ),
        (driven("~<dcmotor joint=\"knee\"/>"), "needs motorconst"),
        (
            driven("<dcmotor joint=\"knee\" nominal=\"24 1 50\" cogging=\"~1 2 0\"/>"),
            "with cogging",
        ),
        (
            driven("<dcmotor joint=\"knee\" nominal=\"24 1 50\" input=\"~pos vel\"/>"),
            "has one input",
        ),
        (driven("~<adhesion ctrlrange=\"0 1\"/>"), "needs body"),
        (driven("<motor ~body=\"a\"/>"), "act on bodies"),
        (
            top("<option actuatorgroupdisable=\"~31\"/>"),
            "groups are 0 .. 30",
        ),
        (
            driven("<general joint=\"knee\" dyntype=\"~user\"/>"),
            "use none, integrator",
        ),
        (
            driven("~<general joint=\"knee\" gaintype=\"dcmotor\"/>"),
            "dyntype dcmotor",
        ),
        (
            driven("<position joint=\"knee\" kv=\"1\" ~dampratio=\"1\"/>"),
            "keep one",
        ),
        (driven("<motor site=\"~s\"/>"), "no site called"),
        (driven("<motor joint=\"knee\" ~tendon=\"t\"/>"), "keep one"),
        (
            driven("<position joint=\"knee\" ~refsite=\"s\"/>"),
            "for actuators with site",
        ),
        (
            driven("<position joint=\"ball\" dampratio=\"~1\"/>"),
            "write kv",
        ),
        (
            driven("<position joint=\"knee\" ~inheritrange=\"1\"/>"),
            "no range",
        ),
        (
            driven("<general joint=\"knee\" ~actrange=\"0 1\"/>"),
            "actuators with a state",
        ),
        (
            driven("<general joint=\"knee\" dyntype=\"filter\" actdim=\"~2\"/>"),
            "contradicts dyntype",
        ),
        (driven("<motor ~delay=\"0.1\" joint=\"knee\"/>"), "`delay` of the task's [[task.action]]"),
        (driven("~<motor/>"), "needs joint"),
        (
            driven("<position joint=\"knee\" kv=\"~-1\"/>"),
            "cannot be negative",
        ),
        (
            "<mujoco><worldbody>~<body name=\"m\" mocap=\"true\"><joint/><geom size=\"1\"/></body></worldbody></mujoco>".to_string(),
            "have no joint",
        ),
    ];
    for (marked, words) in table {
        let text = marked.replace('~', "");
        let message = match parse_text(text.as_str()) {
            Ok(_) => panic!("accepted: {marked}"),
            Err(e) => e.to_string(),
        };
        assert!(message.contains(words), "{message}\n{marked}");
        // Ill-formed XML is placed by the XML parser.
        if words == "not well-formed" {
            assert!(message.starts_with("robot.xml:1:"), "{message}");
            continue;
        }
        let before = &marked[..marked.find('~').unwrap()];
        let line = 1 + before.matches('\n').count();
        let column = 1 + before.rsplit('\n').next().unwrap().chars().count();
        assert!(
            message.starts_with(&format!("robot.xml:{line}:{column}: ")),
            "want {line}:{column}: {message}\n{marked}"
        );
    }
}

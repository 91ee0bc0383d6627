use super::*;

#[test]
fn places_on_long_lines_count_characters() {
    let mut sources = Sources::default();
    let long = "é".repeat(3 * STRIDE);
    let text = format!("<mujoco>\n<a b='{long}'/><c/>\n</mujoco>");
    let end = text.find("<c/>").unwrap();
    let reach = Reach::new(Path::new("x.xml"), None);
    sources.parse(Path::new("x.xml"), text, &reach).unwrap();
    let column = 1 + "<a b=''/>".len() + 3 * STRIDE;
    for (byte, place) in [(0, "1:1".to_string()), (9, "2:1".into()), (end, format!("2:{column}"))] {
        assert_eq!(sources.place(At::new(0, byte)), format!("x.xml:{place}"));
    }
}

/// Runs what must not wait, and fails if it does.
fn at_once<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, answer) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send(work()));
    let patience = std::time::Duration::from_secs(60);
    answer.recv_timeout(patience).expect("it waits")
}

fn pipe(path: &Path) {
    rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::RWXU).unwrap();
}

/// Nobody writes into these pipes: opening one would wait for ever.
#[test]
fn a_pipe_or_a_folder_in_the_place_of_any_file_is_an_error_at_once() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["pipe.xml", "pipe.stl", "pipe.obj", "pipe.png", "pipe.hf"] {
        pipe(&dir.path().join(name));
    }
    for name in ["folder.xml", "folder.stl"] {
        std::fs::create_dir(dir.path().join(name)).unwrap();
    }
    let body = "<worldbody><body><freejoint/><geom type=\"mesh\" mesh=\"m\"/></body></worldbody>";
    let mesh = |file: &str| {
        format!("<mujoco><asset><mesh name=\"m\" file=\"{file}\"/></asset>{body}</mujoco>")
    };
    let field = |file: &str| {
        format!(
            "<mujoco><asset><hfield name=\"h\" size=\"1 1 1 1\" file=\"{file}\"/></asset><worldbody><geom type=\"hfield\" hfield=\"h\"/></worldbody></mujoco>"
        )
    };
    let attached = |file: &str| {
        format!(
            "<mujoco><asset><model name=\"a\" file=\"{file}\"/></asset><worldbody><attach model=\"a\" prefix=\"a_\"/></worldbody></mujoco>"
        )
    };
    let urdf = "<robot name=\"r\"><link name=\"l\"><inertial><mass value=\"1\"/><inertia ixx=\"1\" ixy=\"0\" ixz=\"0\" iyy=\"1\" iyz=\"0\" izz=\"1\"/></inertial><collision><geometry><mesh filename=\"pipe.stl\"/></geometry></collision></link></robot>";
    for (text, words) in [
        ("<mujoco><include file=\"pipe.xml\"/></mujoco>".to_string(), "a pipe"),
        ("<mujoco><include file=\"folder.xml\"/></mujoco>".to_string(), "a folder"),
        (mesh("pipe.stl"), "a pipe"),
        (mesh("pipe.obj"), "a pipe"),
        (mesh("folder.stl"), "a folder"),
        (mesh("/dev/zero"), "outside"),
        (field("pipe.png"), "a pipe"),
        (field("pipe.hf"), "a pipe"),
        (attached("pipe.xml"), "a pipe"),
        (urdf.to_string(), "a pipe"),
    ] {
        let path = dir.path().join("robot.xml");
        std::fs::write(&path, &text).unwrap();
        let error = at_once(move || crate::mjcf::load(&path).unwrap_err().to_string());
        assert!(error.contains(words), "{words}: {error}\n{text}");
        assert!(error.contains("robot.xml:1:"), "{error}");
    }
    for name in ["pipe.xml", "folder.xml"] {
        let path = dir.path().join(name);
        let error = at_once(move || crate::mjcf::load(&path).unwrap_err().to_string());
        assert!(error.contains(name), "{error}");
    }
    let error = at_once(|| crate::mjcf::load(Path::new("/dev/zero")).unwrap_err());
    assert!(error.to_string().contains("a device"), "{error}");
}

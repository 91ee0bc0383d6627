use super::*;

#[test]
fn more_attributes_or_namespaces_than_any_model_has_are_refused_with_their_place() {
    let many = |n: usize| (0..n).map(|i| format!(" a{i}='>'")).collect::<String>();
    let spaces = |n: usize| {
        (0..n)
            .map(|i| format!(" xmlns:a{i}=\"u\""))
            .collect::<String>()
    };
    for (inside, wrong) in [
        (format!("<geom{}/>", many(MAX_ATTRIBUTES)), None),
        (format!("<geom{}/>", many(MAX_ATTRIBUTES + 1)), Some(9)),
        (format!("<geom{}/>", spaces(MAX_NAMESPACES)), None),
        (format!("<geom{}/>", spaces(MAX_NAMESPACES + 1)), Some(9)),
        // Text that is no element does not count.
        (format!("<!-- <geom{}> -->", many(2000)), None),
        (format!("<![CDATA[ <geom{}> ]]>", many(2000)), None),
        (format!("<!-- > --><b{}/>", many(2000)), Some(19)),
    ] {
        let text = format!("<mujoco> {inside}</mujoco>");
        let found = countable(&text);
        assert_eq!(found.err().map(|f| f.0), wrong, "{}", &text[..60]);
    }
    // The XML reader reports text that ends early.
    for text in ["<a b='", "<!-- <a", "<a", "<", "<?a"] {
        assert_eq!(countable(text), Ok(()), "{text}");
    }
}

/// The reader would compare each of them with all before it.
#[test]
fn an_element_with_a_million_attributes_is_refused_before_it_is_read() {
    let attributes: String = (0..1_000_000).map(|i| format!(" a{i}='1'")).collect();
    let text = format!("<mujoco>\n  <option{attributes}/></mujoco>");
    let error = crate::model::mjcf::parse(Path::new("x.xml"), text).unwrap_err();
    let said = error.to_string();
    assert!(said.starts_with("x.xml:2:3: "), "{said}");
    assert!(said.contains("1000000 attributes"), "{said}");
}

#[test]
fn places_on_long_lines_count_characters() {
    let mut sources = Sources::default();
    let long = "é".repeat(3 * STRIDE);
    let text = format!("<mujoco>\n<a b='{long}'/><c/>\n</mujoco>");
    let end = text.find("<c/>").unwrap() as u32;
    let reach = Reach::new(Path::new("x.xml"), None);
    sources.parse(Path::new("x.xml"), text, &reach).unwrap();
    let column = 1 + "<a b=''/>".len() + 3 * STRIDE;
    for (byte, place) in [
        (0, "1:1".to_string()),
        (9, "2:1".into()),
        (end, format!("2:{column}")),
    ] {
        assert_eq!(
            sources.place(At { file: 0, byte }),
            format!("x.xml:{place}")
        );
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
        (
            "<mujoco><include file=\"pipe.xml\"/></mujoco>".to_string(),
            "a pipe",
        ),
        (
            "<mujoco><include file=\"folder.xml\"/></mujoco>".to_string(),
            "a folder",
        ),
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
        let error = at_once(move || crate::model::mjcf::load(&path).unwrap_err().to_string());
        assert!(error.contains(words), "{words}: {error}\n{text}");
        assert!(error.contains("robot.xml:1:"), "{error}");
    }
    for name in ["pipe.xml", "folder.xml"] {
        let path = dir.path().join(name);
        let error = at_once(move || crate::model::mjcf::load(&path).unwrap_err().to_string());
        assert!(error.contains(name), "{error}");
    }
    let error = at_once(|| crate::model::mjcf::load(Path::new("/dev/zero")).unwrap_err());
    assert!(error.to_string().contains("a device"), "{error}");
}

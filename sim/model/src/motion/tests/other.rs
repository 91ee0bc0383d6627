//! Tables of text that are refused, and files that are none of a motion.

use super::broken::refused;
use super::*;

/// The file with this array of names.
fn with_names(bytes: Vec<u8>, array: &[u8]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new_append(std::io::Cursor::new(bytes)).unwrap();
    zip.start_file("joint_names.npy", zip::write::FileOptions::default()).unwrap();
    std::io::Write::write_all(&mut zip, array).unwrap();
    zip.finish().unwrap().into_inner()
}

#[test]
fn tables_of_text() {
    let model = walker();
    let rows = table(&model, &motion(&model, FRAMES, FPS));
    let key = MotionFormat { fps: Some(FPS), ..MotionFormat::default() };
    let no = MotionFormat::default();
    let good = file::text(&rows);
    let wxyz = MotionFormat { quat: Some(QuatOrder::Wxyz), ..key.clone() };
    refused(&model, "a.csv", good.as_bytes(), &no, &["the file", "fps = 50 (--fps 50)", "LAFAN1"]);
    refused(&model, "a.csv", good.as_bytes(), &wxyz, &["quaternion", "quat = \"xyzw\""]);
    let w_first = |r: &Vec<f64>| [&r[..3], &[r[6], r[3], r[4], r[5]], &r[7..]].concat();
    let turned: Vec<Vec<f64>> = rows.iter().map(w_first).collect();
    let turned = file::text(&turned);
    refused(&model, "a.csv", turned.as_bytes(), &key, &["quaternion", "quat = \"wxyz\""]);
    assert!(read(&model, "a.csv", turned.as_bytes(), &wxyz).is_ok());
    let lines: Vec<&str> = good.lines().collect();
    let with = |at: usize, line: &str| {
        let mut lines = lines.clone();
        lines[at] = line;
        lines.join("\n")
    };
    let bad = |text: &str, words: &[&str]| refused(&model, "a.csv", text.as_bytes(), &key, words);
    bad(&good.replace(',', ";"), &["the file", "semicolons stand between its columns"]);
    bad(&good.replace(',', "\t"), &["tabs stand between"]);
    bad(&good.replace(',', " "), &["spaces stand between"]);
    bad("\nHIERARCHY\nROOT hips\n", &["BVH", "retarget it"]);
    bad(&with(5, "1,2,x"), &["line 6, frame 5, column 3", "\"x\" is no number"]);
    bad(&with(5, "1,nan"), &["line 6, frame 5, column 2", "NaN"]);
    bad(
        &with(5, "1,2,3"),
        &["line 6, frame 5", "3 columns, and the robot takes 14 (7 of the root)"],
    );
    let timed: Vec<String> = lines.iter().map(|l| format!("0.1,{l}")).collect();
    bad(&timed.join("\n"), &["15 columns", "times or frames"]);
    let zero = with(2, &["0"; 14].join(","));
    bad(&zero, &["line 3, frame 2, columns 4 to 7", "length 0.0000"]);
    bad(lines[0], &["1 frames"]);
    let header = |names: &str| format!("x,y,z,qx,qy,qz,qw,{names}\n{good}");
    let own =
        "left_hip_pitch,left_hip_roll,left_knee,right_hip_pitch,right_hip_roll,right_knee,elbow";
    bad(&header(&own.replace("elbow", "elbo")), &["line 1, joint elbo", "mean \"elbow\""]);
    bad(&header(&own.replace(",elbow", "")), &["line 1, joint elbow", "has it not"]);
    bad(&header(own).replace("x,y,z,qx", "x,z,y,q1"), &["line 1", "none for its qx"]);
    bad(&header(own).replace("x,y,z,qx", "x,y,z,y"), &["line 1, column 4", "\"y\" is named twice"]);
    let timed = format!("time,{}", header(own).replace('\n', "\n0.5,"));
    bad(&timed, &["line 1, joint time", "leave its column out"]);
    let still = parse(r#"<body><joint name="knee"/><geom size="0.1"/></body>"#);
    let words = ["line 1, frame 0", "8 columns", "task.base = \"free\""];
    let eight = ["0,0,1,0,0,0,1,0.5"; 4].join("\n");
    refused(&still, "a.csv", eight.as_bytes(), &key, &words);
    let named = header(own);
    refused(
        &model,
        "a.csv",
        named.as_bytes(),
        &wxyz,
        &["columns 4 to 7", "the key quat says wxyz"],
    );
    let other = MotionFormat { joints: vec!["elbow".into()], ..key.clone() };
    refused(&model, "a.csv", named.as_bytes(), &other, &["key joints", "first line"]);
    refused(&model, "a.csv", good.as_bytes(), &other, &["key joints, joint left_hip_pitch"]);
    let absurd = MotionFormat { fps: Some(0.0), ..MotionFormat::default() };
    refused(&model, "a.csv", good.as_bytes(), &absurd, &["key fps", "0 frames"]);
}

#[test]
fn what_is_no_file_of_a_motion() {
    let model = walker();
    let made = motion(&model, FRAMES, FPS);
    let valid = File::holosoma(&model, &made);
    let bytes = valid.bytes();
    let no = MotionFormat::default();
    let bad = |name: &str, bytes: &[u8], words: &[&str]| refused(&model, name, bytes, &no, words);
    bad("a.npz", &[], &["empty"]);
    bad("a.npz", &bytes[..bytes.len() / 2], &["no .npz file", "copy it again"]);
    bad("a.npz", b"hello", &["no .npz file"]);
    bad("a.pkl", b"\x80\x04\x95rest", &["pickle", "numpy.savez"]);
    bad("a.csv", b"\x80\x04\x95rest", &["pickle"]);
    bad("a.npy", b"\x93NUMPY\x01\x00", &["one array without a name"]);
    bad("a.csv", &[0xff, 0xfe, 0, 1], &["neither an archive of arrays (.npz) nor text"]);
    let mut damaged = bytes.clone();
    damaged[200] ^= 0x55;
    assert!(read(&model, "a.npz", &damaged, &no).is_err());
    let key = MotionFormat { fps: Some(30.0), ..no.clone() };
    refused(&model, "a.npz", &bytes, &key, &["array fps", "50 frames", "the key fps says 30"]);
    let key = MotionFormat { joints: vec!["knee".into()], ..no.clone() };
    refused(&model, "a.npz", &bytes, &key, &["key joints", "joint_names"]);
    // Names as Python objects.
    let mut file = valid.clone();
    file.drop("joint_names");
    let head = "{'descr': '|O', 'fortran_order': False, 'shape': (7,), }";
    let mut object = b"\x93NUMPY\x01\x00".to_vec();
    object.extend((head.len() as u16).to_le_bytes());
    object.extend(head.bytes());
    refused(&model, "a.npz", &with_names(file.bytes(), &object), &no, &["joint_names", "a pickle"]);
    let two = parse(
        r#"<body><freejoint/><geom size="0.1"/></body>
        <body><freejoint name="ball"/><geom size="0.1"/></body>"#,
    );
    refused(&two, "a.npz", &bytes, &no, &["the robot, joint ball", "second free joint"]);
    let ball = parse(r#"<body><joint name="hip" type="ball"/><geom size="0.1"/></body>"#);
    refused(&ball, "a.npz", &bytes, &no, &["the robot, joint hip", "three hinges"]);
    let none = parse(r#"<body><freejoint/><geom size="0.1"/></body>"#);
    refused(&none, "a.npz", &bytes, &no, &["no hinges"]);
}

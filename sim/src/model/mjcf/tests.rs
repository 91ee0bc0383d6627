use super::*;

fn robots() -> Vec<std::path::PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/robots");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "xml"))
        .collect();
    paths.sort();
    paths
}

#[test]
fn shipped_robots_load_and_ignore_nothing() {
    assert!(!robots().is_empty());
    for path in robots() {
        let model = load(&path).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(model.ignored, [], "{}", path.display());
        assert_eq!(model.qpos0.len(), model.nq);
        assert_eq!(model.sources, [path]);
    }
}

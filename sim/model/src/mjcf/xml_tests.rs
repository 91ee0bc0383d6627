use super::*;

fn read(text: &str) -> Result<(Element, Option<At>), String> {
    parse(0, text).map_err(|f| format!("{}: {}", f.at.byte(), f.message))
}

/// Each of these is read by MuJoCo 4.0.
#[test]
fn what_mujocos_reader_takes_is_read() {
    let model = |inside: &str| format!("<mujoco><a b=\"1\"/>{inside}</mujoco>");
    for text in [
        model("<!-- a -- b -->"),
        model("<!-- ------ a ------ --->"),
        model("<!----->"),
        model("<!-->--> <!-- <x a=1> -->"),
        model("<![CDATA[ ]]>"),
        model("<a b=\"1\"c='2'/>"),
        model("<a b = \"1\" />"),
        model("<a></a >"),
        model("<a></a b=\"1\">"),
        model("< a/>"),
        model("<gazebo:a b:c=\"1\"/>"),
        model("<a b=\"<>\"/>"),
        format!("\n\n<?xml version=\"1.0\"?>{}", model("")),
        format!("\u{feff}<?xml version=\"1.0\"?>{}", model("")),
        format!("<!DOCTYPE mujoco>\n{}", model("")),
        format!("<?pi a?><!-- b -->{}", model("")),
    ] {
        let (root, behind) = read(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert_eq!((root.name.as_str(), behind), ("mujoco", None), "{text}");
        assert!(root.stray.is_none(), "{text}");
        let first = &root.children[0];
        let at = text.find("<a b=\"1\"/>").unwrap();
        assert_eq!((first.name.as_str(), first.at.byte()), ("a", at), "{text}");
    }
    // What stands around the root is named.
    let whole = model("");
    for behind in ["</mujoco>", "<x/>", "words", "</mujoco><x></y>", "<mujoco>"] {
        let (root, at) = read(&format!("{whole}\n{behind}")).unwrap();
        assert_eq!(root.children.len(), 1, "{behind}");
        assert_eq!(at.map(At::byte), Some(whole.len() + 1), "{behind}");
    }
    let (root, _) = read(&format!("words{whole}")).unwrap();
    assert_eq!(root.stray.map(At::byte), Some(0));
    let (root, _) = read("<a><![CDATA[x < y]]></a>").unwrap();
    assert_eq!(root.stray.map(At::byte), Some(3));
    let names = ["<a xmlns=\"u\" xmlns:b=\"v\" xsi:c=\"w\" d=\"1\"/>"];
    let (root, _) = read(names[0]).unwrap();
    assert_eq!((root.attrs.len(), root.attrs[0].name.as_str()), (1, "d"));
}

/// The names that MuJoCo 4.0 gives a joint whose name is written so.
#[test]
fn values_mean_what_they_mean_to_mujoco() {
    for (raw, meant) in [
        ("pick & place", "pick & place"),
        ("a&b;c", "a&b;c"),
        ("a&foo;c", "a&foo;c"),
        ("&lt;&gt;&amp;&quot;&apos;", "<>&\"'"),
        ("a&#65;&#x42;c", "aABc"),
        ("a&#x110000;&#xZZ;&#65c", "a&#x110000;&#xZZ;&#65c"),
        ("a&#10;b", "a b"),
        ("a\r\nb\rc\td", "a b c\td"),
        ("&", "&"),
        ("&;", "&;"),
        ("é&#233;", "éé"),
    ] {
        let text = format!("<a b=\"{raw}\"/>");
        let (root, _) = read(&text).unwrap();
        assert_eq!(root.attrs[0].value, meant, "{raw}");
        assert_eq!(root.attrs[0].value_at(0).byte(), 6, "{raw}");
    }
}

/// `~` marks the place.
#[test]
fn what_nobody_reads_is_refused_with_its_place() {
    for (marked, words) in [
        ("~", "no element"),
        ("<a>~</b></a>", "</b> where <a>"),
        ("~</a>", "ends no element"),
        ("<a>~<b><c/>", "<b> has no end"),
        ("<a>~<b c=\"1\"", "<b has no >"),
        ("<a>~<!-- b</a>", "<!-- has no end"),
        ("<a>~<![CDATA[ b</a>", "has no end"),
        ("<a>~<? b</a>", "has no end"),
        ("<a>5 ~< 6</a>", "&lt;"),
        ("<a ~b/>", "b=\"value\""),
        ("<a ~b=1/>", "b=\"value\""),
        ("<a ~b\"1\"/>", "b=\"value\""),
        ("<a ~b=\"1/>", "no end"),
        ("<a~, b=\"1\"/>", "neither an attribute"),
        ("<a b=\"1\" ~b=\"2\"/>", "given twice"),
        ("<a b=\"1~\u{1}\"/>", "control character"),
        ("<a b=\"1&#65;~&#7;\"/>", "control character"),
        ("<a b=\"1~\u{fffd}\"/>", "iconv"),
        ("~<!DOCTYPE a [<!ENTITY b \"c\">]><a/>", "<!DOCTYPE>"),
    ] {
        let said = read(&marked.replace('~', "")).unwrap_err();
        let place = format!("{}: ", marked.find('~').unwrap());
        assert!(said.starts_with(&place) && said.contains(words), "{said}\n{marked}");
    }
}

/// What is long costs its length: no comparison of each with all before it, no recursion.
#[test]
fn many_attributes_or_elements_are_read_at_once() {
    let attributes: String = (0..200_000).map(|i| format!(" a{i}='1'")).collect();
    let elements = "<b c=''/>".repeat(200_000);
    let (root, _) = read(&format!("<a{attributes}>{elements}</a>")).unwrap();
    assert_eq!((root.attrs.len(), root.children.len()), (200_000, 200_000));
    let deep = "<a>".repeat(200_000);
    assert!(read(&deep).unwrap_err().contains("nested more than"));
}

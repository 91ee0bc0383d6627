//! Names and texts that a robot, a task or a path may have and that mean something elsewhere: to
//! a compiler, a browser, a terminal, a shell, a table. None of them may do anything.
//!
//! Whoever obeys one of them makes something called [`MARK`].

/// What an obeyed text makes: a symbol, an element, a file.
pub const MARK: &str = "injected";

/// One text for each thing that might be obeyed.
pub const TEXTS: [&str; 66] = [
    // C: comments, line splices, trigraphs, strings, preprocessor, keywords.
    "*/ int injected; /*",
    "*\\\n/ int injected; /*",
    "*\\ \t\n/ int injected; /*",
    "*\\\r\n/ int injected; /*",
    "*??/\n/ int injected; /*",
    "*??/??/\n\n/int injected;/*",
    "/*",
    "/",
    "*",
    "//\\",
    "?",
    "??/",
    "x\\",
    "\n#define main injected\n",
    "\r#error injected\r",
    "\u{b}*/\u{c}int injected;",
    "\0*/int injected;/*\0",
    "%>%:define injected",
    "\"; int injected; //",
    "\\x41\\\"\\u0041\\U00000041",
    "%s%n%1000000d",
    "_Pragma(\"injected\")",
    "int",
    "__FILE__",
    "_Bool",
    "operator",
    "9lives",
    "0x",
    // Text that is shown in another order than it is read in, or not at all.
    "a\u{202e}/* ;detcejni tni \u{2066}*/",
    "int injected;\u{2028}int injected;\u{2029}\u{85}int injected;",
    "\u{200b}\u{feff}\u{ad}",
    "\u{e0049}\u{e004e}",
    "größe",
    "机器人",
    "🤖\u{200d}🔧",
    "e\u{301}",
    // Pages.
    "</script><script>window.injected=1</script>",
    "<!--<script>",
    "--><img src=x onerror=\"window.injected=1\">]]>",
    "\" onload=\"injected()\" x='",
    "&lt;img src=x&gt;&#x3c;&quot;",
    "@DATA@@SCRIPT@@POLICY@",
    "__proto__",
    "constructor",
    "javascript:injected()",
    // Terminals and logs.
    "\u{1b}]0;injected\u{7}\u{1b}[2J\u{1b}[31m",
    "\u{9b}31m\u{9d}0;injected\u{9c}",
    "\u{8}\u{8}\u{8}\u{7f}",
    "\r\u{1b}[Kok",
    "\nerror: injected",
    "\n2026-01-01T00:00:00.000000Z  WARN injected",
    // Shells, paths, tables, Markdown, manual pages, XML.
    "$(touch injected)`touch injected`;touch injected|touch injected&",
    "-oinjected",
    "../injected",
    "/tmp/injected",
    "CON",
    "a,b",
    "a;b\tc",
    "=1+cmd|' /C injected'!A0",
    "a|b`c`*d*[injected](javascript:injected())#",
    "|\n# injected",
    ".so injected\n'br\n\\fBinjected",
    "{injected}",
    "NaN",
    "'",
    "\"",
];

/// `count` texts: those above, then joined and interleaved at random from `seed`, some very long.
pub fn texts(count: usize, mut seed: u64) -> Vec<String> {
    const LETTERS: [char; 32] = [
        '*', '/', '\\', '?', '\n', '\r', '\t', ' ', '"', '\'', '<', '>', '&', ';', '#', '%', '$',
        '(', ')', '{', '}', ',', '|', '`', '-', '_', '0', 'x', 'ä', '\0', '\u{1b}', '\u{202e}',
    ];
    // SplitMix64 (Steele, Lea, Flood 2014).
    let mut below = move |n: usize| {
        seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n as u64) as usize
    };
    let mut all: Vec<String> = TEXTS.iter().map(|t| (*t).to_string()).collect();
    while all.len() < count {
        let mut text = String::new();
        for _ in 0..1 + below(4) {
            match below(3) {
                0 => text.push_str(TEXTS[below(TEXTS.len())]),
                _ => text.extend((0..below(6)).map(|_| LETTERS[below(LETTERS.len())])),
            }
        }
        if below(200) == 0 {
            text = text.repeat(100);
        }
        all.push(text);
    }
    all.truncate(count);
    all
}

/// The text as the value of an attribute of XML, without control characters, which are refused there.
pub fn xml(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '\t' | '\n' | '\r' | '&' | '<' | '>' | '"' => out += &format!("&#{};", c as u32),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

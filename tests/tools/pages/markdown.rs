//! Headings, links and blocks of code of a page.

/// A fenced block.
pub struct Block {
    /// The word behind the fence.
    pub kind: String,
    pub text: String,
    /// Of `<!-- file: NAME -->` above it.
    pub file: Option<String>,
}

pub struct Page {
    /// As GitHub and mdBook name them.
    pub anchors: Vec<String>,
    pub links: Vec<String>,
    pub blocks: Vec<Block>,
}

impl Page {
    pub fn read(text: &str) -> Self {
        let mut page = Self { anchors: Vec::new(), links: Vec::new(), blocks: Vec::new() };
        let mut open: Option<Block> = None;
        let mut file = None;
        for line in text.lines() {
            if let Some(fence) = line.trim_start().strip_prefix("```") {
                match open.take() {
                    Some(block) => page.blocks.push(block),
                    None => {
                        open = Some(Block {
                            kind: fence.trim().into(),
                            text: String::new(),
                            file: file.take(),
                        });
                    }
                }
            } else if let Some(block) = &mut open {
                block.text.push_str(line);
                block.text.push('\n');
            } else {
                if let Some(title) = line.strip_prefix('#') {
                    page.anchor(title.trim_start_matches('#').trim());
                }
                let named = line.strip_prefix("<!-- file: ");
                file = named.and_then(|l| l.strip_suffix(" -->")).map(String::from).or(file);
                page.links(line);
            }
        }
        page
    }

    fn anchor(&mut self, title: &str) {
        let keep = |c: char| match c {
            ' ' => Some('-'),
            c if c.is_alphanumeric() || c == '_' || c == '-' => Some(c),
            _ => None,
        };
        let plain = title.to_lowercase().chars().filter_map(keep).collect::<String>();
        let again = |a: &&String| {
            let rest = a.strip_prefix(plain.as_str());
            rest.is_some_and(|r| {
                r.is_empty() || r.strip_prefix('-').is_some_and(|n| n.parse::<u32>().is_ok())
            })
        };
        let count = self.anchors.iter().filter(again).count();
        self.anchors.push(match count {
            0 => plain,
            n => format!("{plain}-{n}"),
        });
    }

    fn links(&mut self, line: &str) {
        // What is quoted as code is no link.
        let mut plain = String::new();
        for (i, part) in line.split('`').enumerate() {
            plain.push_str(if i % 2 == 0 { part } else { "x" });
        }
        for part in plain.split("](").skip(1) {
            if let Some(end) = part.find(')') {
                self.links.push(part[..end].to_string());
            }
        }
    }

    /// Commands in blocks of shell and console, comments and line ends taken off.
    pub fn commands(&self) -> Vec<String> {
        let mut commands = Vec::new();
        for block in &self.blocks {
            let console = block.kind == "console";
            if !(console || block.kind == "sh") {
                continue;
            }
            for line in block.text.replace("\\\n", " ").lines() {
                let line = match console {
                    true => line.strip_prefix("$ "),
                    false => Some(line),
                };
                let Some(line) = line else { continue };
                let line = line.split(" #").next().unwrap().trim();
                commands.push(line.to_string());
            }
        }
        commands
    }
}

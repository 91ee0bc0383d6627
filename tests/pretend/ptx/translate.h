// PTX, as NVRTC makes it, to C++ that run.h completes. What it does not know is an error that
// names the instruction.
//
// PTX's manual: https://docs.nvidia.com/cuda/parallel-thread-execution/
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace ptx {
using Text = std::string;
using Texts = std::vector<std::string>;

inline Text trimmed(const Text& text) {
  const size_t begin = text.find_first_not_of(" \t\n\r"), end = text.find_last_not_of(" \t\n\r");
  return begin == Text::npos ? "" : text.substr(begin, end - begin + 1);
}
inline bool starts(const Text& text, const char* with) { return text.rfind(with, 0) == 0; }
inline bool has(const Texts& all, const char* one) {
  for (const auto& word : all)
    if (word == one) return true;
  return false;
}
// At a separator that stands in no brackets.
inline Texts split(const Text& text, char at) {
  Texts parts;
  Text part;
  int depth = 0;
  for (char c : text) {
    depth += (c == '{' || c == '[' || c == '(') - (c == '}' || c == ']' || c == ')');
    if (c == at && depth == 0) parts.push_back(trimmed(part)), part.clear();
    else part += c;
  }
  if (!trimmed(part).empty()) parts.push_back(trimmed(part));
  return parts;
}
inline Texts words(const Text& text) {
  std::istringstream in(text);
  Texts all;
  for (Text word; in >> word;) all.push_back(word);
  return all;
}
inline Text name_of(const Text& text) {
  Text out;
  for (char c : text) out += isalnum((unsigned char)c) ? c : '_';
  return out;
}

struct Type {
  char kind = 0;  // s, u, b, f, p
  int size = 0;   // bits
  explicit Type(const Text& text) {
    kind = text[0];
    size = text == "pred" ? 8 : atoi(text.c_str() + 1);
    if (!strchr("subfp", kind) || (kind != 'p' && size != 8 && size != 16 && size != 32 && size != 64) || (kind == 'f' && size < 32))
      throw std::runtime_error("a type ." + text);
  }
  Type(char kind, int size) : kind(kind), size(size) {}
  Text plain() const { return "u" + std::to_string(size); }  // its bits
  Text text() const { return kind == 'b' || kind == 'p' ? plain() : Text(1, kind) + std::to_string(size); }
};

class Translator {
 public:
  // The program in C++. `counted`: what warps execute is counted.
  Text translate(const Text& ptx, bool counted) {
    read(ptx);
    std::ostringstream out;
    out << "#define COOPERATES " << cooperates_ << "\n#define COUNTED " << counted << "\n#include \"run.h\"\n";
    out << globals_.str() << prototypes_.str() << bodies_.str();
    out << "const Piece PIECES[] = {{\"\", 0, 0, 0, 0}";
    for (const auto& p : pieces_)
      out << ",\n{\"" << p.function << "\", " << p.instructions << ", " << p.doubles << ", " << p.loads << ", " << p.stores << "}";
    out << "};\n";
    const Text shown = "extern \"C\" __attribute__((visibility(\"default\"))) ";
    for (const auto& [name, bytes] : entries_)
      out << shown << "const unsigned " << name << "_bytes = " << bytes << ";\n"
          << shown << "void " << name << "_launch(const void* args, unsigned blocks, unsigned lanes, unsigned shared) { launch(\""
          << name << "\", f_" << name_of(name) << ", args, blocks, lanes, " << shared_ << " + shared); }\n";
    return out.str();
  }

  const std::vector<std::pair<Text, int>>& entries() const { return entries_; }
  // Bytes of local memory of the deepest call that begins at a function.
  int stack(const Text& function) const {
    int most = 0;
    const auto calls = calls_.find(function);
    if (calls != calls_.end())
      for (const auto& called : calls->second) most = std::max(most, stack(called));
    const auto own = depots_.find(function);
    return most + (own == depots_.end() ? 0 : own->second);
  }

 private:
  struct Counted { Text function; float instructions = 0; int doubles = 0, loads = 0, stores = 0; };
  std::ostringstream globals_, prototypes_, bodies_;
  std::vector<std::pair<Text, int>> entries_;
  std::vector<Counted> pieces_;
  std::map<Text, Text> symbols_;      // of memory: how its address is written
  std::map<Text, int> registers_;     // bits of each kind of the function
  std::map<Text, Text> parameters_;   // of the function and of its calls
  std::map<Text, Texts> targets_;     // of jumps through a table
  std::map<Text, int> depots_;        // bytes of local memory
  std::map<Text, std::set<Text>> calls_;
  Text function_, line_ = "?";  // of the program's text
  int shared_ = 0;
  bool cooperates_ = false, entry_ = false;

  [[noreturn]] static void unknown(const Text& what) { throw std::runtime_error("PTX that is not known: " + what); }

  void read(const Text& all) {
    // Without comments, debugging lines and the header.
    std::istringstream lines(all);
    Text text;
    for (Text line; std::getline(lines, line);) {
      line = line.substr(0, std::min(line.find("//"), line.find('\0')));
      const Text begin = trimmed(line);
      if (starts(begin, ".version") || starts(begin, ".target") || starts(begin, ".address_size") || starts(begin, ".file")) continue;
      text += line + (starts(begin, ".loc") ? ";\n" : "\n");
    }
    cooperates_ = false;
    for (const char* word : {"bar.sync", "barrier.sync", "shfl.sync", "vote.sync", "bar.warp.sync", ".shared"})
      cooperates_ |= text.find(word) != Text::npos;
    for (size_t at = 0; at < text.size();) {
      size_t end = text.find_first_of(";{", at);
      if (end == Text::npos) {
        if (!trimmed(text.substr(at)).empty()) unknown(trimmed(text.substr(at)));
        break;
      }
      const Text head = trimmed(text.substr(at, end - at));
      if (starts(head, ".section")) {  // of debuggers
        at = text.find('}', end) + 1;
        continue;
      }
      if (head.find(".entry") == Text::npos && head.find(".func") == Text::npos) {
        end = text.find(';', at);
        variable(trimmed(text.substr(at, end - at)));
        at = end + 1;
        continue;
      }
      at = end + 1;
      Text body;
      if (text[end] == '{') {
        int depth = 1;
        while (depth) depth += (text[at] == '{') - (text[at] == '}'), ++at;
        body = text.substr(end + 1, at - end - 2);
      }
      function(head, body, text[end] == '{');
    }
  }

  // `.global .align 4 .b8 name[12] = {1, 2}`
  void variable(const Text& text) {
    const size_t equals = text.find('=');
    std::istringstream head(text.substr(0, equals));
    Text space, type, name, align = "8";
    for (Text word; head >> word;) {
      if (word == ".global" || word == ".const" || word == ".shared") space = word;
      else if (word == ".align") head >> align;
      else if (word[0] != '.') name += word;
      else if (word != ".visible" && word != ".weak" && word != ".extern" && word != ".common") type = word.substr(1);
    }
    const size_t bracket = name.find('[');
    const Text label = name.substr(0, bracket);
    const Type of(type);
    const Texts list = equals == Text::npos ? Texts() : listed(trimmed(text.substr(equals + 1)));
    size_t count = bracket == Text::npos ? 1 : strtoul(name.c_str() + bracket + 1, nullptr, 10);
    if (space == ".shared") {
      const int a = atoi(align.c_str());
      shared_ = (shared_ + a - 1) / a * a;
      symbols_[label] = std::to_string(shared_);
      shared_ += count * of.size / 8;
      return;
    }
    if (space.empty()) unknown(text);
    count = std::max<size_t>(std::max(count, list.size()), 1);
    const Text own = "g_" + name_of(label);
    globals_ << "static " << of.plain() << " " << own << "[" << count << "] __attribute__((aligned(" << align << "))) = {";
    for (const auto& value : list) globals_ << "(" << of.plain() << ")" << number(value) << ",";
    globals_ << "};\n";
    symbols_[label] = "(u64)" + own;
  }

  // Bits of a number.
  static Text number(const Text& text) {
    if (starts(text, "0f") || starts(text, "0d")) return "0x" + text.substr(2) + (text[1] == 'f' ? "u" : "ull");
    if (!isdigit((unsigned char)text[0]) && text[0] != '-') unknown(text);
    if (text[0] == '-') return text == "-9223372036854775808" ? "(1ull << 63)" : "(" + text + "ll)";
    return text + "ull";
  }

  void function(const Text& head, const Text& body, bool defined) {
    entry_ = head.find(".entry") != Text::npos;
    Text rest = trimmed(head.substr(head.find(entry_ ? ".entry" : ".func") + (entry_ ? 6 : 5)));
    if (rest[0] == '(') rest = trimmed(rest.substr(rest.find(')') + 1));
    const size_t open = rest.find('('), close = rest.find(')');
    function_ = trimmed(rest.substr(0, open));
    Texts given;
    if (open != Text::npos) given = split(rest.substr(open + 1, close - open - 1), ',');
    parameters_.clear();
    registers_.clear();
    Text signature = "static void f_" + name_of(function_) + "(";
    if (!entry_) signature += "u8* ret";
    for (size_t k = 0; k < given.size(); ++k) {
      // `.param .align 8 .b8 name[16]`
      const Text last = words(given[k]).back(), name = last.substr(0, last.find('['));
      parameters_[name] = "(u64)p" + std::to_string(k);
      signature += (entry_ && k == 0 ? "const u8* p" : ", const u8* p") + std::to_string(k);
      if (entry_) {
        if (given.size() > 1) unknown("an entry with several parameters, " + function_);
        const size_t bracket = last.find('[');
        if (defined) entries_.push_back({function_, bracket == Text::npos ? 8 : atoi(last.c_str() + bracket + 1)});
      }
    }
    if (entry_ && given.empty()) unknown("an entry without a parameter, " + function_);
    prototypes_ << signature << ");\n";
    if (!defined) return;
    parameters_["func_retval0"] = "(u64)ret";
    bodies_ << signature << ") {\n";
    std::ostringstream declared, code;
    statements(body, declared, code);
    bodies_ << declared.str() << "ENTER;\n" << code.str() << "}\n";
  }

  void piece(std::ostringstream& code) {
    pieces_.push_back({function_});
    code << "AT(" << pieces_.size() << ");\n";
  }

  void statements(const Text& body, std::ostringstream& declared, std::ostringstream& code) {
    piece(code);
    for (size_t at = 0; at < body.size();) {
      if (isspace((unsigned char)body[at])) { ++at; continue; }
      if (body[at] == '{' || body[at] == '}') { code << body[at++] << "\n"; continue; }
      size_t end = body.find_first_of(";:", at);
      while (end != Text::npos && body[end] == ':' && end + 1 < body.size() && body[end + 1] == ':') end = body.find_first_of(";:", end + 2);
      if (end == Text::npos) unknown(trimmed(body.substr(at)));
      const Text text = trimmed(body.substr(at, end - at));
      const bool label = body[end] == ':';
      if (text.empty()) { at = end + 1; continue; }
      at = end + 1;
      if (label && body.compare(body.find_first_not_of(" \t\n", at), 14, ".branchtargets") == 0) {
        const size_t last = body.find(';', at);
        const size_t from = body.find(".branchtargets", at) + 14;
        targets_[text] = split(body.substr(from, last - from), ',');
        at = last + 1;
      } else if (label) {
        code << "L_" << name_of(text) << ":;\n";
        piece(code);
      } else if (starts(text, ".reg")) {
        // A call's own stand in its brackets.
        registers(text, text.find('%') == Text::npos ? code : declared);
      } else if (starts(text, ".shared")) {
        variable(text);
      } else if (starts(text, ".local")) {
        local(text, declared);
      } else if (starts(text, ".param")) {
        // Of a call.
        const Texts all = words(text);
        const size_t bracket = all.back().find('[');
        const Text name = all.back().substr(0, bracket);
        const int count = bracket == Text::npos ? 1 : atoi(all.back().c_str() + bracket + 1);
        parameters_[name] = "(u64)" + name;
        code << "u8 " << name << "[" << std::max(16, count * Type(all[all.size() - 2].substr(1)).size / 8) << "] __attribute__((aligned(16)));\n";
      } else if (starts(text, ".loc")) {
        line_ = words(text).at(2);
      } else if (!starts(text, ".pragma")) {
        instruction(text, code);
      }
    }
  }
  // `.reg .b32 %r<12>` or one by its name.
  void registers(const Text& text, std::ostringstream& declared) {
    const Texts all = words(text);
    const Type type(all[1].substr(1));
    const size_t many = all[2].find('<');
    const Text name = all[2].substr(0, many);
    registers_[name] = type.size;
    if (many == Text::npos) {
      declared << type.plain() << " " << name_of(name) << " = 0;\n";
      return;
    }
    const int count = atoi(all[2].c_str() + many + 1);
    for (int k = 1; k < count; ++k) declared << (k % 16 == 1 ? type.plain() + " " : ", ") << name_of(name) << k << " = 0" << (k % 16 == 0 || k + 1 == count ? ";\n" : "");
  }

  void local(const Text& text, std::ostringstream& declared) {
    const Texts all = words(text);
    const Text& last = all.back();
    const size_t bracket = last.find('[');
    const int bytes = atoi(last.c_str() + bracket + 1);
    depots_[function_] += bytes;
    symbols_[last.substr(0, bracket)] = "(u64)" + last.substr(0, bracket);
    declared << "u8 " << last.substr(0, bracket) << "[" << bytes << "] __attribute__((aligned(" << all[2] << ")));\n";
  }

  // An operand as a value of a type.
  Text value(const Text& text, Type type) const {
    Text raw;
    int size = 64;
    if (text == "%tid.x") raw = "LANE", size = 32;
    else if (text == "%ctaid.x") raw = "BLOCK", size = 32;
    else if (text == "%ntid.x") raw = "LANES", size = 32;
    else if (text == "%nctaid.x") raw = "BLOCKS", size = 32;
    else if (text == "%laneid") raw = "(LANE & 31)", size = 32;
    else if (text[0] == '%') raw = name_of(text), size = width(text);
    else if (symbols_.count(text)) raw = symbols_.at(text);
    else if (parameters_.count(text)) raw = parameters_.at(text);
    else if (type.kind == 'p') return atoi(text.c_str()) ? "u8(1)" : "u8(0)";
    else raw = number(text), size = starts(text, "0f") ? 32 : 64;
    if (type.kind != 'f') return "(" + type.text() + ")" + raw;
    if (size != type.size) {
      if (text[0] == '%') unknown("a float in " + text);
      raw = "(" + type.plain() + ")" + raw;
    }
    return "bits<" + type.text() + ">(" + raw + ")";
  }

  int width(const Text& text) const {
    size_t end = text.size();
    auto found = registers_.find(text);
    while (found == registers_.end() && end > 1 && isdigit((unsigned char)text[end - 1])) found = registers_.find(text.substr(0, --end));
    if (found == registers_.end()) unknown(text);
    return found->second;
  }

  Text put(const Text& to, Type type, const Text& expression) const {
    if (to == "_") return "(void)(" + expression + ");";
    if (type.kind == 'f') return name_of(to) + " = bits<" + type.plain() + ">((" + type.text() + ")(" + expression + "));";
    return name_of(to) + " = (" + type.text() + ")(" + expression + ");";
  }

  // `[%rd1+8]`
  Text address(const Text& text) const {
    Text inside = trimmed(text.substr(1, text.size() - 2)), offset;
    const size_t sign = inside.find_first_of("+-", 1);
    if (sign != Text::npos) offset = trimmed(inside.substr(sign)), inside = trimmed(inside.substr(0, sign));
    if (starts(offset, "+-")) offset = offset.substr(1);
    return value(inside, Type('u', 64)) + (offset.empty() ? "" : offset[0] == '-' ? " - " + offset.substr(1) : " + " + offset.substr(1));
  }

  static Texts listed(const Text& text) {
    return text[0] == '{' ? split(text.substr(1, text.size() - 2), ',') : Texts{text};
  }

  // About as many of the machine's instructions as ptxas makes of one of PTX (sm_90).
  static void cost(const Texts& k, const Text& whole, Counted& of) {
    const Text& type = k.back();
    const bool doubles = type == "f64", quotient = k[0] == "div" || k[0] == "rem";
    float n = 1;
    if (k[0] == "cvta") n = 0;
    else if (k[0] == "mov") n = 0.3f;
    else if (k[0] == "neg" || k[0] == "abs") n = 0.2f;
    else if ((k[0] == "ld" || k[0] == "st") && has(k, "param")) n = 0.5f;
    else if (k[0] == "call") n = 5;
    else if (quotient && k[1] == "rn") n = doubles ? 22 : 10;
    else if (quotient) n = 25;
    else if (k[0] == "rcp") n = doubles ? 14 : 7;
    else if (k[0] == "sqrt") n = doubles ? 22 : 9;
    else if (k[0] == "mul" && (type == "s64" || type == "u64")) n = 4;
    else if (type == "s64" || type == "u64" || type == "b64") n = k[0] == "ld" || k[0] == "st" ? 1 : 2;
    of.instructions += n;
    if (whole.find("f64") != Text::npos) of.doubles += k[0] == "div" || k[0] == "sqrt" ? 20 : k[0] == "rcp" ? 12 : k[0] == "ld" || k[0] == "st" || k[0] == "mov" ? 0 : 1;
    of.loads += k[0] == "ld" && has(k, "local");
    of.stores += k[0] == "st" && has(k, "local");
  }

  void instruction(const Text& statement, std::ostringstream& code) {
    Text text = statement, guard;
    for (char& c : text)
      if (c == '\t' || c == '\n') c = ' ';
    if (text[0] == '@') {
      const size_t end = text.find(' ');
      const bool no = text[1] == '!';
      guard = Text("if (") + (no ? "!" : "") + name_of(text.substr(no ? 2 : 1, end - (no ? 2 : 1))) + ") ";
      text = trimmed(text.substr(end));
    }
    const size_t space = text.find(' ');
    const Text op = text.substr(0, space), rest = space == Text::npos ? "" : trimmed(text.substr(space));
    const Texts k = split(op, '.');
    // What the scheduler has to see stands at the beginning of a piece.
    const bool shared = (k[0] == "ld" || k[0] == "st" || k[0] == "atom" || k[0] == "red") && has(k, "shared");
    if (shared) piece(code);
    cost(k, op, pieces_.back());
    code << guard << "{ ";
    try {
      code << one(k, rest, statement);
    } catch (const std::runtime_error& e) {
      throw std::runtime_error(starts(e.what(), "PTX") ? e.what() : "PTX that is not known: " + statement + ": " + e.what());
    }
    code << " }\n";
    if (k[0] == "bra" || k[0] == "call" || k[0] == "bar" || k[0] == "barrier" || k[0] == "shfl" || k[0] == "vote" || k[0] == "brx") piece(code);
  }

  Text one(const Texts& k, const Text& rest, const Text& whole) {
    const Text& o = k[0];
    if (o == "bra") return "goto L_" + name_of(rest) + ";";
    if (o == "ret" || (o == "exit" && entry_)) return "LEAVE; return;";
    if (o == "call") return call(rest);
    const Texts a = split(rest, ',');
    const Text place = "\"line " + line_ + ": " + k[0] + (k.size() > 1 ? "." + k[1] : "") + "\"";
    if (o == "brx") {
      Text text = "switch (" + value(a[0], Type('u', 32)) + ") {";
      const Texts& all = targets_[a[1]];
      for (size_t n = 0; n < all.size(); ++n) text += " case " + std::to_string(n) + ": goto L_" + name_of(all[n]) + ";";
      return text + " }";
    }
    if (o == "membar" || o == "fence" || o == "nanosleep") return "";
    if (o == "trap") return "abort();";
    const Type u32('u', 32);
    if (o == "activemask") unknown("activemask: masks are not taken from the schedule");
    if (o == "bar" || o == "barrier") {
      if (k[1] == "warp") return "warp_barrier(" + value(a[0], u32) + ", " + place + ");";
      if (a.size() != 1 || a[0] != "0") unknown(whole);
      return "barrier(" + place + ");";
    }
    if (o == "shfl") {
      const Texts to = split(a[0], '|');
      return "u32 valid; " + name_of(to[0]) + " = shuffle('" + (k[2] == "down" ? "d" : k[2] == "up" ? "u" : k[2] == "bfly" ? "b" : "i") + "', " +
             value(a[1], u32) + ", " + value(a[2], u32) + ", " + value(a[3], u32) + ", " + value(a[4], u32) + ", &valid, " + place + ");" +
             (to.size() > 1 ? " " + name_of(to[1]) + " = valid;" : "");
    }
    if (o == "vote") {
      const Text kind = k[2] == "ballot" ? "b" : k[2] == "all" ? "a" : k[2] == "any" ? "n" : "u";
      return name_of(a[0]) + " = vote('" + kind + "', " + value(a[1], Type('p', 8)) + ", " + value(a[2], u32) + ", " + place + ");";
    }
    const Type type(k.back());
    if (o == "ld" || o == "st") return memory(k, a, type, place);
    if (o == "atom" || o == "red") return atomic(k, a, type, place);
    if (o == "mov") return move(a, type);
    if (o == "cvta") {
      const Text to = has(k, "to") ? " - " : " + ";
      return put(a[0], type, value(a[1], type) + (has(k, "shared") ? to + "SHARED" : ""));
    }
    if (o == "cvt") return convert(k, a);
    if (o == "setp") return compare(k, a, type);
    const auto in = [&](size_t n) { return value(a.at(n), type); };
    const auto bare = [&](size_t n) { return value(a.at(n), Type('u', type.size)); };
    if (o == "selp") return put(a[0], type, value(a[3], Type('p', 8)) + " ? " + in(1) + " : " + in(2));
    if (o == "clz") return put(a[0], Type('u', 32), in(1) + " ? __builtin_clz" + (type.size == 64 ? "ll(" : "(") + in(1) + ") : " + std::to_string(type.size));
    if (o == "popc") return put(a[0], Type('u', 32), Text("__builtin_popcount") + (type.size == 64 ? "ll(" : "(") + in(1) + ")");
    if (o == "brev" && type.size == 32) return put(a[0], type, "reversed(" + in(1) + ")");
    if (o == "bfind" && type.kind == 'u' && type.size == 32)
      return put(a[0], type, in(1) + " == 0 ? ~0u : " + (has(k, "shiftamt") ? "" : "31 - ") + "(u32)__builtin_clz(" + in(1) + ")");
    if (o == "prmt") return put(a[0], type, "permuted(" + in(1) + ", " + in(2) + ", " + in(3) + ")");
    if (o == "lop3") return put(a[0], type, "chosen_bits(" + in(1) + ", " + in(2) + ", " + in(3) + ", " + a[4] + ")");
    if (o == "shf") {
      const Text both = "((u64)" + in(2) + " << 32 | " + in(1) + ")";
      const Text by = has(k, "wrap") ? "(" + in(3) + " & 31)" : "(" + in(3) + " > 32 ? 32 : " + in(3) + ")";
      return put(a[0], type, k[1] == "l" ? "(" + both + " << " + by + ") >> 32" : both + " >> " + by);
    }
    if (o == "bfi") return put(a[0], type, "with_bits<" + type.plain() + ">(" + in(1) + ", " + in(2) + ", " + value(a[3], u32) + ", " + value(a[4], u32) + ")");
    if (o == "bfe") return put(a[0], type, "shifted_right(" + type.text() + "(shifted_left(" + bare(1) + ", " + std::to_string(type.size) + " - (" + value(a[2], u32) + " & 255) - (" + value(a[3], u32) + " & 255))), " + std::to_string(type.size) + " - (" + value(a[3], u32) + " & 255))");
    if (type.kind == 'f') {
      const bool near = k.size() == 2 || k[1] == "rn";
      if (o == "add" && k[1] == "rz" && type.size == 32) return put(a[0], type, "sum_to_zero(" + in(1) + ", " + in(2) + ")");
      if (near && (o == "add" || o == "sub" || o == "mul" || o == "div"))
        return put(a[0], type, in(1) + (o == "add" ? " + " : o == "sub" ? " - " : o == "mul" ? " * " : " / ") + in(2));
      if (near && o == "fma") return put(a[0], type, "std::fma(" + in(1) + ", " + in(2) + ", " + in(3) + ")");
      if (near && o == "sqrt") return put(a[0], type, "std::sqrt(" + in(1) + ")");
      if (near && o == "rcp") return put(a[0], type, "1 / " + in(1));
      if (near && o == "neg") return put(a[0], type, "-" + in(1));
      if (near && o == "abs") return put(a[0], type, "std::fabs(" + in(1) + ")");
      if (near && (o == "min" || o == "max")) return put(a[0], type, (o == "min" ? "least(" : "most(") + in(1) + ", " + in(2) + ")");
      if (near && o == "copysign") return put(a[0], type, "std::copysign(" + in(2) + ", " + in(1) + ")");
      unknown(whole);
    }
    const Text sign = o == "and" ? " & " : o == "or" ? " | " : o == "xor" ? " ^ " : "";
    if (!sign.empty()) return put(a[0], type, in(1) + sign + in(2));
    if (o == "not") return put(a[0], type, type.kind == 'p' ? "!" + in(1) : "~" + in(1));
    if (o == "shl") return put(a[0], type, "shifted_left(" + bare(1) + ", " + value(a[2], u32) + ")");
    if (o == "shr") return put(a[0], type, "shifted_right(" + in(1) + ", " + value(a[2], u32) + ")");
    if (k.size() == 2 && (o == "add" || o == "sub")) return put(a[0], type, bare(1) + (o == "add" ? " + " : " - ") + bare(2));
    if (o == "neg") return put(a[0], type, "0 - " + bare(1));
    if (o == "abs") return put(a[0], type, in(1) + " < 0 ? 0 - " + bare(1) + " : " + bare(1));
    if (o == "min" || o == "max") return put(a[0], type, in(1) + (o == "min" ? " < " : " > ") + in(2) + " ? " + in(1) + " : " + in(2));
    if (o == "div" || o == "rem") return put(a[0], type, in(1) + (o == "div" ? " / " : " % ") + in(2));
    if (o == "mul" || o == "mad") {
      const Text more = o == "mad" ? " + " : "";
      if (k[1] == "lo") return put(a[0], type, bare(1) + " * " + bare(2) + (more.empty() ? "" : more + bare(3)));
      const Text wide = type.size == 64 ? (type.kind == 's' ? "(__int128)" : "(unsigned __int128)") : "(" + Type(type.kind, 2 * type.size).text() + ")";
      const Text product = wide + in(1) + " * " + wide + in(2);
      if (k[1] == "hi") return put(a[0], type, "((" + product + ") >> " + std::to_string(type.size) + ")" + (more.empty() ? "" : more + bare(3)));
      const Type twice(type.kind, 2 * type.size);
      if (k[1] == "wide" && type.size < 64) return put(a[0], twice, "(" + twice.plain() + ")(" + product + ")" + (more.empty() ? "" : more + value(a[3], twice)));
    }
    unknown(whole);
  }

  // `(retval0), name, (param0, param1)`
  Text call(const Text& rest) {
    Texts parts = split(rest, ',');
    Text back = "nullptr";
    if (parts[0][0] == '(') back = trimmed(parts[0].substr(1, parts[0].size() - 2)), parts.erase(parts.begin());
    if (parts[0][0] == '%') unknown("a call by a pointer, " + rest);
    calls_[function_].insert(parts[0]);
    Text text = "f_" + name_of(parts[0]) + "(" + back;
    if (parts.size() > 1)
      for (const auto& given : split(parts[1].substr(1, parts[1].size() - 2), ',')) text += ", " + given;
    return text + ");";
  }

  Text memory(const Texts& k, const Texts& a, Type type, const Text& place) {
    const bool reads = k[0] == "ld", shared = has(k, "shared");
    const Texts all = listed(a[reads ? 0 : 1]);
    const int size = type.size / 8;
    Text text = "const u64 at = " + address(a[reads ? 1 : 0]) + (shared ? " + SHARED" : "") + "; ";
    const Text bytes = std::to_string(size * all.size());
    if (shared) text += "USE(at - SHARED, " + bytes + (reads ? ", READ, " : ", WRITE, ") + place + "); ";
    else if (!has(k, "param")) text += "TOUCH(at, " + bytes + "); ";
    const Type as = reads && type.kind != 'f' ? type : Type('u', type.size);
    for (size_t n = 0; n < all.size(); ++n) {
      const Text at = "at + " + std::to_string(n * size);
      if (!reads) text += "store<" + as.text() + ">(" + at + ", " + value(all[n], as) + "); ";
      else text += all[n] == "_" ? "" : name_of(all[n]) + " = load<" + as.text() + ">(" + at + "); ";
    }
    return text;
  }

  Text atomic(const Texts& k, const Texts& a, Type type, const Text& place) {
    const bool keeps = k[0] == "atom";
    const size_t first = keeps ? 1 : 0;
    const bool shared = has(k, "shared");
    Text text = "const u64 at = " + address(a[first]) + (shared ? " + SHARED" : "") + "; const " + type.text() + " was = load<" + type.text() + ">(at), x = " + value(a[first + 1], type) + "; ";
    const Text bytes = std::to_string(type.size / 8);
    text += shared ? "USE(at - SHARED, " + bytes + ", ATOMIC, " + place + "); " : "TOUCH(at, " + bytes + "); ";
    const Text next = has(k, "add") ? "was + x" : has(k, "min") ? "x < was ? x : was" : has(k, "max") ? "x > was ? x : was" : has(k, "and") ? "was & x" : has(k, "or") ? "was | x"
                    : has(k, "exch") ? "x" : has(k, "cas") ? "was == x ? " + value(a[first + 2], type) + " : was" : "";
    if (next.empty()) unknown(place);
    text += "store<" + type.text() + ">(at, (" + type.text() + ")(" + next + "));";
    return keeps ? text + " " + put(a[0], type, "was") : text;
  }

  Text move(const Texts& a, Type type) {
    const Type bare('u', type.size);
    if (a[0][0] == '{') {
      const Texts to = listed(a[0]);
      const Type part('u', type.size / (int)to.size());
      Text text = "const " + bare.text() + " whole = " + value(a[1], bare) + "; ";
      for (size_t n = 0; n < to.size(); ++n)
        if (to[n] != "_") text += put(to[n], part, "whole >> " + std::to_string(n * part.size)) + " ";
      return text;
    }
    if (a[1][0] == '{') {
      const Texts from = listed(a[1]);
      const Type part('u', type.size / (int)from.size());
      Text text;
      for (size_t n = 0; n < from.size(); ++n) text += (n ? " | (" : "(") + bare.text() + ")" + value(from[n], part) + " << " + std::to_string(n * part.size);
      return put(a[0], bare, text);
    }
    return put(a[0], type.kind == 'p' ? type : bare, value(a[1], type.kind == 'p' ? type : bare));
  }

  Text convert(const Texts& k, const Texts& a) {
    const Type from(k.back()), to(k[k.size() - 2]);
    const Text rounding = k.size() > 3 ? k[1] : "";
    for (size_t n = 1; n + 2 < k.size(); ++n)
      if (k[n] != "rn" && k[n] != "rni" && k[n] != "rzi" && k[n] != "rmi" && k[n] != "rpi") unknown("cvt." + k[n]);
    const Text x = value(a[1], from);
    const Text to_whole = rounding == "rni" ? "std::rint" : rounding == "rzi" ? "std::trunc" : rounding == "rmi" ? "std::floor" : rounding == "rpi" ? "std::ceil" : "";
    if (from.kind == 'f' && to.kind == 'f') return put(a[0], to, to_whole.empty() ? "(" + to.text() + ")" + x : to_whole + "(" + x + ")");
    if (from.kind == 'f') return put(a[0], to, "whole<" + to.text() + ">(" + to_whole + "((f64)" + x + "))");
    return put(a[0], to, "(" + to.text() + ")" + x);
  }

  Text compare(const Texts& k, const Texts& a, Type type) {
    const Text x = value(a[1], type), y = value(a[2], type);
    static const std::map<Text, Text> SIGNS = {{"eq", "=="}, {"ne", "!="}, {"lt", "<"}, {"le", "<="}, {"gt", ">"}, {"ge", ">="}, {"lo", "<"}, {"ls", "<="}, {"hi", ">"}, {"hs", ">="}};
    // True where one is NaN: what the opposite is false of.
    static const std::map<Text, Text> UNORDERED = {{"neu", "=="}, {"ltu", ">="}, {"leu", ">"}, {"gtu", "<="}, {"geu", "<"}};
    const Text& how = k[1];
    Text text;
    if (how == "num") text = x + " == " + x + " && " + y + " == " + y;
    else if (how == "nan") text = x + " != " + x + " || " + y + " != " + y;
    else if (how == "equ") text = "!(" + x + " < " + y + ") && !(" + x + " > " + y + ")";
    else if (type.kind == 'f' && how == "ne") text = x + " < " + y + " || " + x + " > " + y;
    else if (type.kind == 'f' && UNORDERED.count(how)) text = "!(" + x + " " + UNORDERED.at(how) + " " + y + ")";
    else if (SIGNS.count(how)) text = x + " " + SIGNS.at(how) + " " + y;
    else unknown("setp." + how);
    const Type pred('p', 8);
    const Texts to = split(a[0], '|');
    const Text join = has(k, "and") ? " && " : has(k, "or") ? " || " : has(k, "xor") ? " != " : "";
    const auto joined = [&](const Text& c) { return join.empty() ? c : "(" + c + ")" + join + "(" + value(a[3], pred) + " != 0)"; };
    return put(to[0], pred, joined(text)) + (to.size() > 1 ? " " + put(to[1], pred, joined("!(" + text + ")")) : "");
  }
};
}  // namespace ptx

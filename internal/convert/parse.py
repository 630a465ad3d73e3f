"""Prints the syntax tree of a CUDA source file as JSON: a node is [type, field, start, end, children].

Usage: parse.py FILE [NAME...]. The names are macros that the parser cannot place, such as attributes of functions; they
count as blanks, with their arguments. The result is the root and a list of [start, end] of what counted as blanks. It
exits with 3 where tree-sitter or its grammar of CUDA is missing.
"""
import sys

sys.path[:] = [p for p in sys.path if p]  # a package is not to come from the current folder, which may be a stranger's

import json

try:
    import tree_sitter
    import tree_sitter_cuda
except ImportError as e:
    print(e.name, file=sys.stderr)
    sys.exit(3)

LANGUAGE = tree_sitter.Language(tree_sitter_cuda.language())
PARSER = tree_sitter.Parser(LANGUAGE)


def walk(node):
    """All nodes from node on, without recursion, which deep expressions would exhaust."""
    stack = [node]
    while stack:
        n = stack.pop()
        yield n
        stack.extend(reversed(n.children))


def blanked(source, names):
    """The tree of the source with blanks where the tree has one of the names, and its arguments; and where that is."""
    text, ranges = bytearray(source), []
    while True:
        tree = PARSER.parse(bytes(text))
        found = False
        for n in walk(tree.root_node):
            if n.child_count > 0 or bytes(text[n.start_byte:n.end_byte]) not in names:
                continue
            end, depth = n.end_byte, 0
            at = end
            while at < len(text) and text[at] in b" \t\r\n":
                at += 1
            if at < len(text) and text[at] == ord("("):
                for at in range(at, len(text)):
                    depth += {ord("("): 1, ord(")"): -1}.get(text[at], 0)
                    if depth == 0:
                        end = at + 1
                        break
            ranges.append([n.start_byte, end])
            for i in range(n.start_byte, end):
                if text[i] != ord("\n"):
                    text[i] = ord(" ")
            found = True
        if not found:
            return ranges, tree


def encode(node, shift=0, field=None):
    children = []
    for i, c in enumerate(node.children):
        children.append(encode(c, shift, node.field_name_for_child(i)))
    if node.type == "preproc_arg":
        children = macro_body(node)
    kind = "MISSING" if node.is_missing else node.type
    return [kind, field or "", node.start_byte + shift, node.end_byte + shift, children]


def macro_body(node):
    """The text of a macro, parsed as statements."""
    head = b"auto m(){"
    body = node.text.replace(b"\\\n", b"  ").replace(b"\\\r\n", b"   ")
    tree = PARSER.parse(head + body + b"\n;}")
    first, last = len(head), len(head) + len(body)
    out, stack = [], [tree.root_node]
    while stack:  # the largest nodes that are of the body alone
        n = stack.pop()
        if n.start_byte >= first and n.end_byte <= last:
            out.append(encode(n, node.start_byte - first))
        elif n.end_byte > first and n.start_byte < last:
            stack.extend(reversed(n.children))
    return out


def main():
    sys.setrecursionlimit(100000)
    with open(sys.argv[1], "rb") as f:
        source = f.read()
    names = {b"__align__"} | {a.encode() for a in sys.argv[2:]}
    ranges, tree = blanked(source, names)
    json.dump([encode(tree.root_node), ranges], sys.stdout, separators=(",", ":"))


main()

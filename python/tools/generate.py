"""Writes the modules of the package that follow from the declarations of scenarios and results.

`tools/test-python` fails if they differ, and writes them if it is called as
`APUS_WRITE_DOCS=1 tools/test-python tests/test_generated.py`.
"""

from __future__ import annotations

import json
import keyword
import re
import textwrap
from dataclasses import dataclass, field
from typing import Any, ClassVar

HEAD = '''"""{doc}

Made from the declarations of scenario files (`python/tools/generate.py`).
"""

from __future__ import annotations
'''

TYPES = {
    "time": "Time",
    "rate": "Rate",
    "size": "Size",
    "size or unlimited": "Size",
    "drift": "str",
    "count": "int",
    "number": "float",
    "flag": "bool",
    "text": "str",
    "texts": "Sequence[str]",
    "text or texts": "str | Sequence[str]",
    "hosts": "int | Sequence[int]",
    "moment": "str",
    "threshold": "str | float",
    "value": "str | float | bool",
    "values": "Sequence[str | float | bool]",
    "settings": "Mapping[str, Value]",
    "algorithms": "Algorithm | Mapping[str, Algorithm]",
}

# Names of tables whose key is not descriptive enough.
NAMES = {"Middle": "SwitchLink", "Of": "Measured", "RelativeTo": "Divisor"}

# Algorithms whose papers do not spell the name as a single capitalised word.
ALGORITHMS = {"expresspass": "ExpressPass"}

Json = dict[str, Any]


def camel(name: str) -> str:
    """Return a name of files as that of a class."""
    return "".join(word.capitalize() for word in re.split(r"[-_]", name))


def wrap(text: str, indent: str, hanging: str = "") -> str:
    """Return text in lines of at most 100 characters."""
    return textwrap.fill(
        text,
        100,
        initial_indent=indent,
        subsequent_indent=indent + hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )


@dataclass
class Argument:
    """An argument of a class or a function."""

    name: str
    key: str
    type: str
    doc: str


@dataclass
class Module:
    """The text of a module while it is made."""

    doc: str
    imports: set[str] = field(default_factory=set)
    names: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)

    def text(self) -> str:
        """Return the module."""
        names = "".join(f'    "{name}",\n' for name in sorted(self.names))
        body = "\n\n\n".join(self.body)
        # As an annotation, and not in documentation.
        types = sorted(
            name
            for name in ("Rate", "Size", "Time", "Value")
            if re.search(rf'(: "?|\| |, ){name}("?,| \||\]|"?$)', body, re.MULTILINE)
        )
        abstract = sorted(
            name for name in ("Mapping", "Sequence") if re.search(rf"\b{name}\[", body)
        )
        typing = [
            name
            for name in ("Any", "ClassVar", "Literal", "TypedDict")
            if re.search(rf"\b{name}\b", body)
        ]
        lines = [f"from typing import {', '.join(['TYPE_CHECKING', *typing])}\n"]
        lines += sorted(self.imports)
        lines.append("if TYPE_CHECKING:")
        if abstract:
            lines.append(f"    from collections.abc import {', '.join(abstract)}\n")
        if types:
            lines.append(f"    from apus._types import {', '.join(types)}")
        head = "\n".join(lines)
        return f"{HEAD.format(doc=self.doc)}\n{head}\n\n__all__ = [\n{names}]\n\n\n{body}\n"


class Generator:
    """The modules of the declarations."""

    def __init__(self, declarations: Json) -> None:
        self.tables: list[Json] = declarations["tables"]
        self.declarations = declarations
        self.named: dict[int, str] = {}

    def modules(self) -> dict[str, str]:
        """Return the text of each module by its name."""
        run, root = self.tables[0], self.tables[1]
        by_name = {key["name"]: key for key in run["keys"]}
        topology, workload = (self.tables[by_name[n]["table"]] for n in ("topology", "workload"))
        return {
            "algorithms": self.algorithms(),
            "topologies": self.kinds(topology, "Topology", "Topologies of scenarios."),
            "workloads": self.kinds(workload, "Workload", "Workloads of scenarios."),
            "scenarios": self.scenario([*root["keys"][:3], *run["keys"], *root["keys"][3:]]),
            "settings": self.settings(),
            "summary": self.summary(),
        }

    def type_of(self, key: Json) -> str:
        """Return the type of a key's value."""
        if key["type"] == "word":
            return f"Literal[{', '.join(json.dumps(word) for word in key['words'])}]"
        if key["table"] is None:
            return TYPES[key["type"]]
        table = self.tables[key["table"]]
        if not table["keys"]:
            return f"Mapping[str, {TYPES[table['others']]}]"
        name = self.name_of(key)
        match key["type"]:
            case "tables":
                return f"Sequence[{name}]"
            case "text or table":
                return f"str | {name}"
            case _:
                return name

    def name_of(self, key: Json) -> str:
        """Return the name of the type of a key's table."""
        if key["name"] in ("topology", "workload"):
            return camel(key["name"])
        table = key["table"]
        if table not in self.named:
            name = camel(key["name"])
            name = NAMES.get(name, name)
            if name in self.named.values():
                raise ValueError(f"two tables are named {name}; name one of them in NAMES")
            self.named[table] = name
        return self.named[table]

    def argument(self, key: Json) -> Argument:
        """Return the argument of a key."""
        name = key["name"]
        if key["type"] == "tables":
            name += "es" if name.endswith("s") else "s"
        elif keyword.iskeyword(name):
            name += "_"
        form = ", ".join(part for part in (key["form"], key["range"]) if part)
        default = "" if key["default"] is None else f'; default "{key["default"]}"'
        doc = f"{key['doc']} ({form}{default})."
        return Argument(name, key["name"], self.type_of(key), doc)

    def algorithms(self) -> str:
        """Return the module of algorithms."""
        module = Module("Algorithms of scenarios, each a class with its parameters.")
        module.imports.add("from apus._settings import Settings")
        module.names = ["Algorithm"]
        module.body.append(
            'class Algorithm(Settings):\n    """An algorithm with its parameters."""'
        )
        for info in self.declarations["algorithms"]:
            name = ALGORITHMS.get(info["name"], camel(info["name"]))
            module.names.append(name)
            profiles = ", ".join(json.dumps(one["name"]) for one in info["profiles"])
            docs = "; ".join(f'"{one["name"]}": {one["doc"]}' for one in info["profiles"])
            arguments = [
                Argument(
                    "profile", "profile", f"Literal[{profiles}]", f"Profile of defaults. {docs}."
                )
            ]
            arguments += [self.parameter(one, info) for one in info["parameters"]]
            summary = info["doc"][0].upper() + info["doc"][1:]
            module.body.append(
                f'class {name}(Algorithm):\n    """Algorithm `{info["name"]}`.\n\n'
                + wrap(f"{summary}.", "    ")
                + "\n\n"
                + wrap(f"Source: {info['source']}.", "    ")
                + '\n    """\n\n'
                + self.init(name, arguments, {"name": info["name"]})
            )
        return module.text()

    def parameter(self, parameter: Json, info: Json) -> Argument:
        """Return the argument of a parameter."""
        form = ", ".join(part for part in (parameter["form"], parameter["range"]) if part)
        doc = f"{parameter['doc']} ({form})."
        every = [one["name"] for one in info["profiles"]]
        for default in parameter["defaults"]:
            where = "" if default["profiles"] == every else f" in {', '.join(default['profiles'])}"
            doc += f" Default{where}: {default['value']}."
        for rule in parameter["derived"]:
            doc += f" From the network in {', '.join(rule['profiles'])}: {rule['rule']}."
        return Argument(
            parameter["name"], parameter["name"], self.type_of({**parameter, "table": None}), doc
        )

    def signature(self, arguments: list[Argument], indent: str) -> str:
        """Return arguments by name, each `None` unless given."""
        return "".join(f"{indent}{one.name}: {one.type} | None = None,\n" for one in arguments)

    def documented(self, arguments: list[Argument], indent: str) -> str:
        """Return the documentation of arguments."""
        lines = [f"{indent}Args:"]
        lines += [wrap(f"{one.name}: {one.doc}", f"{indent}    ", "    ") for one in arguments]
        return "\n".join(lines) + "\n"

    def call(self, arguments: list[Argument], fixed: dict[str, str], indent: str) -> str:
        """Return the arguments of the constructor of `Settings` after the name."""
        keys = {one.name: one.key for one in arguments if one.name != one.key}
        renamed = ", ".join(f"{json.dumps(a)}: {json.dumps(b)}" for a, b in keys.items())
        values = [f'"{one.name}": {one.name}' for one in arguments]
        body = "".join(f"{indent}    {value},\n" for value in values)
        return f"{json.dumps(fixed)},\n{indent}{{{renamed}}},\n{indent}{{\n{body}{indent}}},\n"

    def init(self, name: str, arguments: list[Argument], fixed: dict[str, str]) -> str:
        """Return the constructor of a class."""
        return (
            f"    def __init__(\n        self,\n        *,\n{self.signature(arguments, ' ' * 8)}"
            f'    ) -> None:\n        """Set the parameters that are given.\n\n'
            f'{self.documented(arguments, " " * 8)}        """\n'
            f'        super().__init__(\n            "{name}",\n            '
            f"{self.call(arguments, fixed, ' ' * 12)}        )"
        )

    def kinds(self, table: Json, result: str, doc: str) -> str:
        """Return the module of a table with kinds: a function for each."""
        module = Module(doc)
        module.imports.add("from apus._settings import Settings")
        module.names = [result]
        module.body.append(
            f'class {result}(Settings):\n    """A {result.lower()} of a scenario."""'
        )
        own = [key for key in table["keys"] if key["type"] != "kind"]
        used: set[str] = set()
        for kind in table["kinds"]:
            name = kind["name"].replace("-", "_")
            module.names.append(name)
            arguments = [self.argument(key) for key in (*kind["keys"], *own)]
            names = [one.name for one in arguments]
            if len(set(names)) != len(names):
                raise ValueError(f"{name}: two arguments have one name: {names}")
            used.update(re.findall(r"[A-Z]\w+", " ".join(one.type for one in arguments)))
            doc = kind["doc"]
            module.body.append(
                f"def {name}(\n    *,\n{self.signature(arguments, ' ' * 4)}) -> {result}:\n"
                f'    """{result} `{kind["name"]}`.\n\n'
                f"{wrap(doc[0].upper() + doc[1:] + '.', '    ')}\n\n"
                f'{self.documented(arguments, " " * 4)}    """\n'
                f'    return {result}(\n        "{name}",\n        '
                f"{self.call(arguments, {'kind': kind['name']}, ' ' * 8)}    )"
            )
        settings = sorted(used & set(self.named.values()))
        text = module.text()
        if settings:
            line = f"    from apus.settings import {', '.join(settings)}"
            text = text.replace("\n\n__all__", f"\n{line}\n\n__all__", 1)
        return text

    def scenario(self, keys: list[Json]) -> str:
        """Return the module of the class `Scenario`."""
        module = Module("Scenarios as objects.")
        module.imports.add("from apus._scenario import Written")
        module.names = ["Scenario"]
        arguments = [self.argument(key) for key in keys]
        module.body.append(
            'class Scenario(Written):\n    """A scenario, with the keys of a scenario file."""\n\n'
            + self.init("Scenario", arguments, {})
        )
        used = set(re.findall(r"[A-Z]\w+", " ".join(one.type for one in arguments)))
        settings = sorted(used & set(self.named.values()))
        lines = [
            "    from apus.algorithms import Algorithm",
            f"    from apus.settings import {', '.join(settings)}",
            "    from apus.topologies import Topology",
            "    from apus.workloads import Workload",
        ]
        return module.text().replace("\n\n__all__", "\n" + "\n".join(lines) + "\n\n__all__", 1)

    def settings(self) -> str:
        """Return the module of the tables within topologies, workloads and scenarios."""
        module = Module("Tables within topologies, workloads and scenarios: dictionaries.")
        done: set[int] = set()
        # Writing a type may add further tables.
        while rest := [table for table in self.named if table not in done]:
            for number in rest:
                done.add(number)
                module.names.append(self.named[number])
                module.body.append(self.dictionary(number))
        return module.text()

    def summary(self) -> str:
        """Return the module of the numbers of a run."""
        module = Module("Numbers of a run, each with its definition, unit and aggregation.")
        module.imports.add(
            "from apus._numbers import (\n    Convert,\n    Distribution,\n    Each,\n    Every,\n"
            "    Numbers,\n    OpDistribution,\n)"
        )
        module.names = ["Distribution", "OpDistribution"]
        tree: Json = {}
        for column in self.declarations["results"][0]["columns"]:
            if column["name"] == "schema_version":
                continue
            node = tree
            for part in column["name"].split("."):
                node = node.setdefault(part, {})
            node[""] = column
        self.numbers(module, "Summary", tree, "The numbers of a run.")
        return module.text()

    def numbers(self, module: Module, name: str, tree: Json, doc: str) -> None:
        """Add the class of a part of the summary."""
        lines, parts = [], []
        for key, node in tree.items():
            # The numbers of a span depend on its quantity.
            optional = " | None" if name == "Span" else ""
            attribute = f"{key}_" if keyword.iskeyword(key) else key
            column = node.get("")
            if column is not None:
                kind = self.NUMBERS[column["type"]]
                if column["type"] is None:
                    kind = f"Sequence[{self.ENTRIES.get(key, 'Mapping[str, Any]')}]"
                if column["optional"]:
                    kind += " | None"
            elif "<stat>" in node:
                kind = "OpDistribution" if "lower" in node else "Distribution"
                parts.append((key, kind))
                column = node["<stat>"][""]
            else:
                (first, inner), *_ = node.items()
                prefix = "" if name == "Summary" else name
                kind = prefix + camel(key)
                if placeholder(first):
                    listed = key in self.LISTS
                    parts.append((key, f"{'Every' if listed else 'Each'}({kind})"))
                    self.numbers(module, kind, inner, f"Numbers of one entry of `{key}`.")
                    kind = f"Sequence[{kind}]" if listed else f"Mapping[str, {kind}]"
                else:
                    parts.append((key, kind))
                    self.numbers(module, kind, node, f"Part `{key}` of the summary.")
            lines.append(f"    {attribute}: {kind}{optional}")
            if column is not None:
                unit = f"; unit: {column['unit']}" if column["unit"] else ""
                over = "" if column["over"] == "-" else f"; {column['over']}"
                text = column["doc"][0].upper() + column["doc"][1:]
                lines.append(quoted(f"{text}{unit}{over}.".replace("\\", "\\\\")))
            else:
                lines.append(f'    """Part `{key}`."""')
        converted = "".join(f'        "{key}": {convert},\n' for key, convert in parts)
        table = (
            f"    _PARTS: ClassVar[Mapping[str, Convert]] = {{\n{converted}    }}\n\n"
            if parts
            else ""
        )
        module.names.append(name)
        body = "\n".join(lines)
        module.body.append(f'class {name}(Numbers):\n    """{doc}"""\n\n{table}{body}')

    LISTS: ClassVar[tuple[str, ...]] = ("jobs",)
    """Parts of the summary that are lists. Other numbered ones are objects with numbers as keys."""

    ENTRIES: ClassVar[dict[str, str]] = {
        "notes": "str",
        "iterations_us": "float",
        "stuck": "str",
        "leftover": "str",
    }
    """Types of the entries of lists that are no tables."""

    NUMBERS: ClassVar[dict[str | None, str]] = {
        "flag": "bool",
        "count": "int",
        "number": "float",
        "text": "str",
        None: "",
    }

    def dictionary(self, number: int) -> str:
        """Return the type of the dictionaries of a table."""
        name, table = self.named[number], self.tables[number]
        arguments = [self.argument(key) for key in table["keys"]]
        if any(keyword.iskeyword(one.key) for one in arguments):
            lines = "".join(
                f"{wrap(one.doc, '        # ')}\n".replace("\n        ", "\n        ")
                + f'        "{one.key}": {json.dumps(one.type)},\n'
                for one in arguments
            )
            lines = re.sub(r"\n        (?=[^\s#\"])", "\n        # ", lines)
            return (
                f'{name} = TypedDict(\n    "{name}",\n    {{\n{lines}    }},\n    total=False,\n)'
            )
        lines = "\n".join(f"    {one.key}: {one.type}\n{quoted(one.doc)}" for one in arguments)
        return f'class {name}(TypedDict, total=False):\n    """A table of a scenario."""\n\n{lines}'


def placeholder(name: str) -> bool:
    """Return whether a part of a path stands for a name that the scenario gives."""
    return name.startswith("<")


def quoted(doc: str) -> str:
    """Return the documentation of an attribute."""
    return wrap(f'"""{doc}"""', "    ")

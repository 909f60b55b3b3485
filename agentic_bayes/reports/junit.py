"""A gate as JUnit XML, which CI systems show as test results."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from agentic_bayes.decisions.gate import Gate

# what XML 1.0 cannot hold, not even escaped
FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(gate: Gate, *, excused: bool = False) -> str:
    """One test case per row of the table, that is per requirement, with the sentence and the missing trials."""
    cases = []
    classname, sentence = (clean_text(text) for text in (f"{gate.agent}.{gate.metric}", str(gate)))
    for requirement, _, verdict in gate.table().rows:
        case = ElementTree.Element("testcase", {"classname": classname, "name": clean_text(requirement)})
        if gate.trials.unscored:
            properties = ElementTree.SubElement(case, "properties")
            for name, count in gate.trials.to_dict().items():
                ElementTree.SubElement(properties, "property", {"name": f"trials_{name}", "value": str(count)})
        if verdict == "fail" or (verdict == "inconclusive" and not excused):
            ElementTree.SubElement(case, "failure", {"type": verdict, "message": sentence})
        elif verdict == "inconclusive":
            ElementTree.SubElement(case, "skipped", {"message": sentence})
        ElementTree.SubElement(case, "system-out").text = sentence
        cases.append(case)
    counts = {
        "tests": len(cases),
        "failures": sum(case.find("failure") is not None for case in cases),
        "skipped": sum(case.find("skipped") is not None for case in cases),
        "errors": 0,
    }
    numbers = {name: str(count) for name, count in counts.items()}
    root = ElementTree.Element("testsuites", {"name": "agentic-bayes", **numbers})
    suite = ElementTree.SubElement(root, "testsuite", {"name": "agentic-bayes gate", **numbers})
    suite.extend(cases)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def clean_text(text: str) -> str:
    """The text without what XML cannot hold."""
    return FORBIDDEN.sub("\ufffd", text)

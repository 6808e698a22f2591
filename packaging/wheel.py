"""Writes a Python wheel that carries the command: the same bytes for the same files and date.

    wheel.py COMMAND VERSION DIRECTORY [LICENCE]...
"""

import base64
import hashlib
import os
import sys
import time
import zipfile

# `lockstep` is another project on the index.
NAME = "lockstep_trace"
# The command needs no library, so that any Linux will do.
TAG = "py3-none-manylinux_2_5_x86_64.manylinux1_x86_64.musllinux_1_1_x86_64"

command, version, directory, *licences = sys.argv[1:]
# Archives of this kind know no time before 1980.
date = time.gmtime(max(int(os.environ["SOURCE_DATE_EPOCH"]), 315532800))[:6]


def content(path):
    with open(path, "rb") as file:
        return file.read()


about = f"{NAME}-{version}.dist-info"
metadata = f"""\
Metadata-Version: 2.1
Name: {NAME.replace("_", "-")}
Version: {version}
Summary: Find the task that fell out of step, and the place, in an unmodified parallel program
License: MIT OR Apache-2.0
Requires-Python: >=3.7
Description-Content-Type: text/markdown

"""
wheel = f"""\
Wheel-Version: 1.0
Generator: lockstep
Root-Is-Purelib: false
""" + "".join(f"Tag: py3-none-{platform}\n" for platform in TAG.split("-")[-1].split("."))

files = [(f"{NAME}-{version}.data/scripts/lockstep", content(command), 0o755)]
for licence in licences:
    files.append((f"{about}/licenses/{os.path.basename(licence)}", content(licence), 0o644))
readme = content(os.path.join(os.path.dirname(__file__), "../README.md"))
files.append((f"{about}/METADATA", metadata.encode() + readme, 0o644))
files.append((f"{about}/WHEEL", wheel.encode(), 0o644))
record = ""
for name, data, _ in files:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    record += f"{name},sha256={digest},{len(data)}\n"
files.append((f"{about}/RECORD", f"{record}{about}/RECORD,,\n".encode(), 0o644))

with zipfile.ZipFile(os.path.join(directory, f"{NAME}-{version}-{TAG}.whl"), "w", zipfile.ZIP_DEFLATED) as archive:
    for name, data, mode in files:
        entry = zipfile.ZipInfo(name, date)
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.create_system = 3  # Unix: the mode is heeded
        entry.external_attr = (0o100000 | mode) << 16
        archive.writestr(entry, data)

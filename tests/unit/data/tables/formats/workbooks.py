"""Workbooks written part by part, as no library writes them."""

import zipfile

HEADER = '<row><c t="str"><v>text</v></c></row>'
RELATED = '<Relationship Id="r{0}" Type="x/{1}" Target="{2}"/>'
PARTS = {
    "_rels/.rels": f"<Relationships>{RELATED.format(1, 'officeDocument', 'book.xml')}"
    "</Relationships>",
    "book.xml": '<workbook><sheets><sheet name="A" r:id="r1" xmlns:r="r"/></sheets></workbook>',
    "_rels/book.xml.rels": f"<Relationships>{RELATED.format(1, 'worksheet', 'one.xml')}"
    f"{RELATED.format(2, 'sharedStrings', 'shared.xml')}</Relationships>",
    "shared.xml": "<sst><si><t>one</t></si></sst>",
}


def write_parts(path, rows, **parts):
    sheet = f"<worksheet><sheetData>{rows}</sheetData></worksheet>"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {**PARTS, "one.xml": sheet, **parts}.items():
            archive.writestr(name, content)
    return path

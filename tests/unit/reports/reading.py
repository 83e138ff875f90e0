"""What a browser finds in a page."""

from html.parser import HTMLParser


class Reader(HTMLParser):
    """Elements with their attributes, and the text in each and in all."""

    def __init__(self, html):
        super().__init__()
        self.elements, self.open, self.text = [], [], ""
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.elements.append({"tag": tag, "text": "", **dict(attributes)})
        if tag != "meta":
            self.open.append(self.elements[-1])

    def handle_endtag(self, tag):
        assert self.open.pop()["tag"] == tag

    def handle_data(self, data):
        self.text += data
        if self.open:
            self.open[-1]["text"] += data

    def find(self, tag, **attributes):
        wanted = {"tag": tag, **attributes}.items()
        return [element for element in self.elements if wanted <= element.items()]

"""Pages read back: the elements of HTML in their order."""

from html.parser import HTMLParser


class Elements(HTMLParser):
    """The elements of a page: (tag, class, text) of each, in the order in which they begin."""

    def __init__(self, text):
        super().__init__()
        self.found, self.begun = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append([tag, dict(attributes).get("class"), ""])
        if tag != "meta":
            self.begun.append(self.found[-1])

    def handle_endtag(self, tag):
        assert self.begun.pop()[0] == tag

    def handle_data(self, text):
        for element in self.begun[-1:]:
            element[2] += text

    def texts(self, *tags):
        return [" ".join(text.split()) for tag, _, text in self.found if tag in tags]

    def classes(self, *tags):
        return [kind for tag, kind, _ in self.found if tag in tags]

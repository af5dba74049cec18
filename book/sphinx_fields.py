"""Leave the fields of named tuples out of the Python reference: all that Python says of them is their number."""


def setup(app):
    app.connect("autodoc-skip-member", lambda app, what, name, member, skip, options: is_field(member) or None)
    return {"parallel_read_safe": True}


def is_field(member):
    return type(member).__name__ == "_tuplegetter"

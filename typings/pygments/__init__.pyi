from .formatters import HtmlFormatter
from .lexers import PythonLexer

def highlight(code: str, lexer: PythonLexer, formatter: HtmlFormatter) -> str: ...

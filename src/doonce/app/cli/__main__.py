"""`python -m doonce.app.cli`"""

from doonce.app.cli.root import main

main()

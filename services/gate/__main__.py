"""`python -m services.gate`"""

import asyncio

from libs.common.run import serve
from services.gate.app import PROGRAM

if __name__ == "__main__":
    asyncio.run(serve([PROGRAM]))

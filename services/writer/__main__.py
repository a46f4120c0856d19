"""`python -m services.writer`"""

import asyncio

from libs.common.run import serve
from services.writer.app import PROGRAM

if __name__ == "__main__":
    asyncio.run(serve([PROGRAM]))

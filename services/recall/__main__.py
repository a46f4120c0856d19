"""`python -m services.recall`"""

import asyncio

from libs.common.run import serve
from services.recall.app import PROGRAM

if __name__ == "__main__":
    asyncio.run(serve([PROGRAM]))

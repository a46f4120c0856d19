"""`python -m services.consolidator`"""

import asyncio

from libs.common.run import serve
from services.consolidator.app import PROGRAM

if __name__ == "__main__":
    asyncio.run(serve([PROGRAM]))

"""`python -m services.reembedder`"""

import asyncio

from libs.common.run import serve
from services.reembedder.app import PROGRAM

if __name__ == "__main__":
    asyncio.run(serve([PROGRAM]))

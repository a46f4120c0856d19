"""`python -m services.api`"""

import asyncio

from libs.common.run import serve
from services.api.app import PROGRAM

if __name__ == "__main__":
    asyncio.run(serve([PROGRAM]))

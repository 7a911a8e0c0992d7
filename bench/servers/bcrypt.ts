import { createServer } from 'node:http'
import { compareSync, hashSync } from 'bcryptjs'
import { serve } from './serve.ts'

// The upper limit of logins: bcryptjs in one thread, and nothing else.

const hash = hashSync('a password', 12)

async function compare ({ seconds }: { seconds: number }): Promise<number> {
  const start = performance.now()
  let count = 0
  do {
    compareSync('a password', hash)
    count++
  } while (performance.now() - start < seconds * 1000)
  return count / (performance.now() - start) * 1000
}

await serve(createServer(), { calls: { compare } })

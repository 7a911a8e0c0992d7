import t from 'tap'
import { createReads } from '../../../lib/lists/reads.ts'
import { BATCH_SIZE, type Collection, type Document, type Store } from '../../../lib/store/port.ts'
import { openRules } from '../../helpers/services.ts'

const settle = () => new Promise((resolve) => setImmediate(resolve))

t.test('counts and pages of disconnected callers are not read, and callers take turns', async (t) => {
  for (const [kind, method] of [['count', 'count'], ['page', 'next']] as const) {
    let gate = Promise.withResolvers<void>()
    const read: string[] = []
    const { users, clients } = await openRules(t, {
      around: ({ method: called, args }, run) => {
        if (called !== method) return run()
        read.push(JSON.stringify(args))
        return gate.promise.then(run)
      }
    })
    for (const [name, ask] of [
      ['users', (contains: string, user_id: string, signal?: AbortSignal) => users[kind]({ contains }, { user_id, isAdmin: true, ...(signal && { signal }) })],
      ['clients', (user: string, user_id: string, signal?: AbortSignal) => (kind === 'count'
        ? clients.count(user, { user_id, isAdmin: true, ...(signal && { signal }) })
        : clients.page({ user }, { user_id, isAdmin: true, ...(signal && { signal }) }))]
    ] as const) {
      read.length = 0
      gate = Promise.withResolvers()
      const left = new AbortController()
      const greedy = Array.from({ length: 20 }, () => ask('greedy', 'a', left.signal))
      const patient = ask('patient', 'a')
      const stranger = ask('stranger', 'b')
      const settled = Promise.allSettled(greedy)
      await settle()
      t.equal(read.length, 8, `${name}: as many reads at once as keep SQLite busy`)
      left.abort()
      await settle()
      gate.resolve()
      await Promise.all([patient, stranger])
      const results = await settled
      t.equal(results.filter(({ status }) => status === 'rejected').length, 12)
      const order = read.slice(8).map((call) => /greedy|patient|stranger/.exec(call)?.[0])
      t.strictSame([...new Set(order)].sort(), ['patient', 'stranger'], `${name}: nothing that was dropped is read`)
    }
  }
})

/** A list of `length` documents that is never read to its end, and how many cursors are open on it. */
function createEndless (length = BATCH_SIZE + 1) {
  const documents = Array.from({ length }, (_, number) => ({ id: `t${number}` }))
  const seen = { open: 0 }
  const things = {
    async * page () { yield documents },
    async * stream () {
      seen.open++
      try {
        while (true) yield documents.slice(0, BATCH_SIZE)
      } finally {
        seen.open--
      }
    }
  } as unknown as Collection<Document>
  return { things, seen }
}

function openReads () {
  const reads = createReads({ engine: 'sqlite' } as Store)
  const { things, seen } = createEndless()
  const begin = async (user_id?: string, isAdmin = false, signal?: AbortSignal, of = things) => {
    const caller = user_id === undefined ? undefined : { user_id, isAdmin, signal }
    const list = (await reads.page(of, { limit: 0 }, (thing) => thing, { caller })).batches[Symbol.asyncIterator]()
    await list.next()
    return list
  }
  /** Lists that stay open. */
  const fill = async (count: number, name: (number: number) => string | undefined, isAdmin = false) =>
    await Promise.all(Array.from({ length: count }, async (_, number) => await begin(name(number), isAdmin)))
  return { begin, fill, seen }
}

t.test('people hold 48 cursors together, and administrators and the program 16 of their own', async (t) => {
  const { begin, fill, seen } = openReads()
  const [first] = await fill(48, (number) => `user${number}`)
  let isIn = false
  const waiting = begin('another').then(() => { isIn = true })
  await settle()
  t.equal(isIn, false, 'one more waits')
  const [own] = await fill(12, (number) => `admin${number}`, true)
  await fill(4, () => undefined)
  t.equal(seen.open, 64)
  const next = begin('admin12', true)
  await first?.return?.()
  await waiting
  t.equal(seen.open, 64)
  await own?.return?.()
  await (await next).return?.()
  t.equal(seen.open, 63)
})

t.test('a user holds 8 cursors, and is refused a further one at once, even by waiting', async (t) => {
  const { begin, fill } = openReads()
  const [first] = await fill(8, () => 'ann')
  await t.rejects(begin('ann'), { code: 'ErrLimit', headers: { 'retry-after': '1' } })
  await fill(40, (number) => `user${number}`)
  const waiting = Array.from({ length: 8 }, async () => await begin('bob'))
  await settle()
  await t.rejects(begin('bob'), { code: 'ErrLimit' })
  await first?.return?.()
  await (await Promise.any(waiting)).return?.()
})

t.test('a list that waits for a cursor is dropped when its caller disconnects', async (t) => {
  const { begin, fill, seen } = openReads()
  const [first] = await fill(48, (number) => `user${number}`)
  const caller = new AbortController()
  const dropped = Array.from({ length: 8 }, async () => await begin('ann', false, caller.signal))
  const settled = Promise.allSettled(dropped)
  await settle()
  caller.abort()
  t.ok((await settled).every(({ status }) => status === 'rejected'))
  t.equal(seen.open, 48)
  await (await begin('admin', true)).return?.()
  await first?.return?.()
  await (await begin('ann')).return?.()
})

t.test('a whole list of at most 100 documents needs no cursor', async (t) => {
  const { begin, fill } = openReads()
  await fill(48, (number) => `user${number}`)
  const { things, seen } = createEndless(BATCH_SIZE)
  for (let time = 0; time < 20; time++) await begin('ann', false, undefined, things)
  t.equal(seen.open, 0)
})

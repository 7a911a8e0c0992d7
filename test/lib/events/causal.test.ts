import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import type { Event } from '../../../schemas/event.ts'
import type { Kind, Order } from '../../fixtures/ordered-child.ts'
import { reuseMongoDatabase } from '../../helpers/mongo-database.ts'
import { MONGODB_URL } from '../../helpers/mongodb.ts'
import { openPlainServices } from '../../helpers/plain-services.ts'
import { type Choose, createRandom } from '../../helpers/scheduler.ts'

t.setTimeout(600_000)

const CHILD = fileURLToPath(new URL('../../fixtures/ordered-child.ts', import.meta.url))

/** A change, with positions among all beginnings and acknowledgements. */
interface Made {
  text: string
  begun: number
  acknowledged: number
}

/** Two processes that make changes in one store, and publish events. */
async function start (t: Test, database: string) {
  const children: ChildProcess[] = []
  const answers = new Map<number, (answer: { text: string } | { error: string }) => void>()
  for (let count = 0; count < 2; count++) {
    const child = fork(CHILD, [database])
    t.teardown(() => child.kill('SIGKILL'))
    await once(child, 'message')
    child.on('message', (answer: { number: number } & ({ text: string } | { error: string })) => { answers.get(answer.number)!(answer) })
    children.push(child)
  }
  const made: Made[] = []
  let [position, next] = [0, 0]

  async function order (child: number, kind: Kind, user_id: string): Promise<string> {
    const { promise, resolve } = Promise.withResolvers<{ text: string } | { error: string }>()
    const number = next++
    answers.set(number, resolve)
    const begun = position++
    children[child]!.send({ number, kind, user_id } satisfies Order)
    const answer = await promise
    if ('error' in answer) throw new Error(answer.error)
    made.push({ text: answer.text, begun, acknowledged: position++ })
    return answer.text.split(' ')[1]!
  }

  return {
    made,
    /** Makes one change after another, each in a process that `pick` names. */
    async call (count: number, choose: Choose, pick: (turn: number) => number): Promise<void> {
      const users: { id: string, isPatched: boolean }[] = []
      for (let turn = 0; turn < count; turn++) {
        const user = users[choose(users.length + 1)]
        const child = pick(turn)
        if (user === undefined) {
          const kind = (['create', 'create', 'client', 'revoke'] as const)[choose(4)]!
          const id = await order(child, kind, '')
          if (kind === 'create') users.push({ id, isPatched: false })
        } else if (user.isPatched) {
          users.splice(users.indexOf(user), 1)
          await order(child, 'remove', user.id)
        } else {
          user.isPatched = true
          await order(child, 'patch', user.id)
        }
      }
    }
  }
}

/** Reads the feed until it has the events of all changes. */
async function readFeed (database: string, made: readonly Made[]): Promise<Event[]> {
  const services = await openPlainServices({ database })
  try {
    const { events } = services
    const found: Event[] = []
    const missing = new Set(made.map(({ text }) => text))
    for (let after = await events.first(); missing.size > 0;) {
      const read = await events.read({ after })
      if (read.events.length === 0) await sleep(50)
      after = read.after
      found.push(...read.events)
      for (const { type, target } of read.events) missing.delete(`${type} ${target.id}`)
    }
    return found
  } finally {
    await services.close()
  }
}

/** How many events come before one of a change that was acknowledged before theirs began. */
function countSwaps (texts: readonly string[], made: readonly Made[]): number {
  const changes = new Map(made.map((one) => [one.text, one]))
  let swaps = 0
  let acknowledged = Number.POSITIVE_INFINITY
  for (const text of texts.toReversed()) {
    const change = changes.get(text)
    if (change === undefined) continue
    if (acknowledged < change.begun) swaps++
    acknowledged = Math.min(acknowledged, change.acknowledged)
  }
  return swaps
}

async function run (t: Test, database: string, count: number): Promise<void> {
  const { call, made } = await start(t, database)
  await call(count, createRandom(1), (turn) => turn % 2)
  await Promise.all(Array.from({ length: 8 }, async (_, caller) => {
    const choose = createRandom(caller + 2)
    await call(count / 4, choose, () => choose(2))
  }))
  const found = await readFeed(database, made)
  t.equal(countSwaps(found.map(({ type, target }) => `${type} ${target.id}`), made), 0, `of ${made.length} changes`)
  const times = found.map(({ time }) => time)
  t.strictSame(times, times.toSorted(), 'the time does not go back')
  t.strictSame(found.map(({ cursor }) => Number(cursor.split('.')[1])), found.map((_, index) => index + 1), 'no gaps')
}

t.test('changes one after another, in two processes, are in the feed in that order', async (t) => {
  await t.test('on sqlite', async (t) => await run(t, `sqlite:${t.testdir()}/identity.db`, 400))
  await t.test('on mongodb', { skip: MONGODB_URL === undefined && 'MONGODB_URL is not set' }, async (t) => await run(t, reuseMongoDatabase(t, MONGODB_URL!), 80))
})

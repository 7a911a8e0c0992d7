import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { MongoClient } from 'mongodb'
import { openMongoStore } from '../../../../lib/store/mongo.ts'
import type { Store } from '../../../../lib/store/port.ts'
import { type ProxyThread, startProxyThread } from './proxy-thread.ts'

/** The behaviour of the address after a cut: it accepts connections at once, refuses them for a while, or leaves them mute. */
const AFTERMATHS = ['up', 'refusing', 'hanging'] as const
type Aftermath = typeof AFTERMATHS[number]

/** Milliseconds after the address answers again, within which every caller must get an answer. */
const RECOVERY = 15_000

/** Milliseconds of load before each cut. The driver gets stuck only when it has not checked the server for half a second. */
const QUIET = 1_000

const CALLERS = 24

export interface CutsResult {
  /** The cuts from which the store did not recover in time. */
  lost: string[]
  /** The longest recovery, in milliseconds. */
  slowest: number
  acknowledged: number
  /** Acknowledged writes that are not in the database. */
  missing: string[]
  /** Number of times that the store replaced its client. */
  replaced: number
}

/** Cuts the connections of a store under load, repeatedly. At the end it reads back every acknowledged write. */
export async function cutRepeatedly (server: string, cuts: number): Promise<CutsResult> {
  const direct = new MongoClient(server)
  const database = `identity_test_${randomBytes(6).toString('hex')}`
  const [target] = direct.options.hosts
  const proxy = await startProxyThread({ host: target!.host ?? '127.0.0.1', port: target!.port ?? 27017 })
  const result: CutsResult = { lost: [], slowest: 0, acknowledged: 0, missing: [], replaced: 0 }
  const store = await openMongoStore(`mongodb://127.0.0.1:${proxy.port}/${database}?directConnection=true`, {
    collections: [{ name: 'things', keys: {} }], now: Date.now, onError: () => result.replaced++
  })
  const load = startLoad(store)
  try {
    for (let cut = 0; cut < cuts; cut++) {
      await sleep(QUIET)
      const aftermath = AFTERMATHS[cut % AFTERMATHS.length]!
      const time = await cause(proxy, aftermath, cut)
      const took = await load.waitForAnswers(time, RECOVERY)
      result.slowest = Math.max(result.slowest, took ?? RECOVERY)
      if (took === null) result.lost.push(`${cut} ${aftermath}`)
      else await store.ping()
    }
    const acknowledged = await load.stop()
    const there = new Set(await direct.db(database).collection<{ _id: string }>('things').distinct('_id'))
    result.acknowledged = acknowledged.length
    result.missing = acknowledged.filter((id) => !there.has(id))
  } finally {
    await load.stop()
    await store.close()
    await proxy.stop()
    await direct.db(database).dropDatabase()
    await direct.close()
  }
  return result
}

/** Resolves to the time at which the address answers again. */
async function cause (proxy: ProxyThread, aftermath: Aftermath, cut: number): Promise<number> {
  if (aftermath !== 'up') await proxy.set(aftermath === 'refusing' ? 'refuse' : 'freeze')
  await proxy.cut({ reset: cut % 5 === 4 })
  if (aftermath !== 'up') {
    await sleep(200 + (cut * 631) % 3_000)
    await proxy.set('pass')
  }
  return performance.now()
}

/** Starts callers that read or write without a pause until they are stopped. */
function startLoad (store: Store) {
  const things = store.collection('things')
  const state = { stopped: false }
  const acknowledged: string[] = []
  /** When each caller's last successful call began. */
  const answered = Array.from({ length: CALLERS }, () => 0)
  const callers = answered.map(async (_, caller) => {
    for (let number = 0; !state.stopped; number++) {
      const begin = performance.now()
      try {
        // Mostly reads: quick calls, so that a cut meets many of them at the moment they are sent.
        if (caller % 4 === 0) {
          await things.insert({ id: `${caller} ${number}` })
          acknowledged.push(`${caller} ${number}`)
        } else await things.get('none')
        answered[caller] = begin
      } catch {
        await sleep(20)
      }
    }
  })
  return {
    /** Resolves to the milliseconds after which each caller had an answer to a call made after `time`; null when they exceed the limit. */
    async waitForAnswers (time: number, limit: number): Promise<number | null> {
      while (performance.now() < time + limit) {
        if (answered.every((begin) => begin >= time)) return performance.now() - time
        await sleep(10)
      }
      return null
    },
    async stop (): Promise<string[]> {
      state.stopped = true
      await Promise.all(callers)
      return acknowledged
    }
  }
}

import { generateKeySync } from 'node:crypto'
import { createSecretBox, generateSecretKey } from '../../lib/crypto/secrets.ts'
import type { Happening } from '../../lib/events/types.ts'
import { type UserRecord, createUserRecord } from '../../lib/records/user.ts'
import type { Store } from '../../lib/store/port.ts'
import { createAttempts } from '../../lib/throttling/attempts.ts'
import { createFactors } from '../../lib/ways/factors.ts'
import type { SlowHash } from '../../lib/ways/recovery-codes.ts'
import { generateCode } from '../../lib/ways/totp.ts'
import type { WayService } from '../../lib/ways/ways.ts'
import { createWatchedRecorder } from './events.ts'
import { createTestNotices } from './mails.ts'
import { openTestWays } from './user-changes.ts'

const STEP = 30_000

/** Marks an app that is being added as proved, as if its first right code had been of a step long ago. */
export async function proveApp (ways: Pick<WayService, 'findPrepared' | 'update'>, user_id: string, id: string): Promise<void> {
  await ways.update((await ways.findPrepared({ user_id }, id))!, { material: { step: 0 } })
}

/** Second factors on a store, with a clock that stands, and users who have them. */
export function openFactors (store: Store, box = createSecretBox(generateSecretKey())) {
  let time = Date.parse('2126-11-23T00:00:15.000Z')
  const now = () => time
  const events: Happening[] = []
  const recorder = createWatchedRecorder(store, (happening) => { events.push(happening) })
  const ways = openTestWays({ store, now, recorder, tokens: { deleteOfUser: () => {} }, onError: (error) => { throw error } })
  const attempts = createAttempts({ store, now, key: generateKeySync('hmac', { length: 256 }) })
  const failed: string[] = []
  const hashed: number[] = []
  let stalled: (() => Promise<void>) | undefined
  const slow: SlowHash = {
    codeCost: 4,
    async stretch (codes, { salt }) {
      const wait = stalled
      stalled = undefined
      await wait?.()
      hashed.push(codes.length)
      return codes.map((code) => `slow ${salt} ${code}`)
    }
  }
  const factors = createFactors({ store, now, ways, box, attempts, recorder, failures: { recordFactor: (id) => { failed.push(id) } }, slow, serviceName: 'Northwind ID', notices: createTestNotices(now) })
  const users = store.collection<UserRecord>('users')

  /** The actor of a user, as of now. */
  const actor = async (user_id: string) => ({ user_id, epoch: (await users.get(user_id))!.epoch })

  return {
    ways,
    factors,
    users,
    events,
    failed,
    /** The number of texts of each call for slow hashes. */
    hashed,
    /** What happens in the next slow hash. */
    stall: (run: () => Promise<void>) => { stalled = run },
    attempts,
    actor,
    advance: (milliseconds: number) => { time += milliseconds },
    /** A user with a password and nothing else. */
    async create (id: string): Promise<void> {
      await users.put(createUserRecord(time, { id, account: id, roles: {}, password: 'hash', name: '', info: {} }))
    },
    /** Adds an app. `code` shows the code of the step this many steps from now. */
    async addApp (user_id: string) {
      const { id, seed } = await factors.beginTotp(await actor(user_id), user_id)
      await proveApp(ways, user_id, id)
      await ways.name(await actor(user_id), [id])
      return { id, code: async (steps = 0) => await generateCode(seed, time + steps * STEP) }
    },
    async addCodes (user_id: string): Promise<string[]> {
      const { id, codes } = await factors.prepareCodes(await actor(user_id))
      await ways.name(await actor(user_id), [id])
      return codes
    }
  }
}

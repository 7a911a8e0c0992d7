import { createSecretKey } from 'node:crypto'
import t from 'tap'
import { createDecoys, makeDecoy } from '../../../lib/hashes/decoys.ts'
import { readHash } from '../../../lib/hashes/foreign.ts'
import { type UserRecord, createUserRecord } from '../../../lib/records/user.ts'
import { readOwnHash } from '../../../lib/users/passwords.ts'
import { COLLECTIONS } from '../../../lib/store/collections.ts'
import { forEachEngine } from '../../helpers/stores.ts'
import { waitUntil } from '../../helpers/wait.ts'

const HASHES = [
  '$2b$05$RKF.JRc8mSr8QCoXqSbBLO3NJGR1AXDzOtJXqkokiP7PGBWdzu06.',
  '$argon2id$v=19$m=8192,t=2,p=2$2SZ8q6eQEZ6owlzsiYXoHA$ZWBHeKRsR792Y2J1j8nqECkpqNlp8OpOl1nw2WBUKdE',
  '$pbkdf2-sha256$600000$IyQEoJQSgvB.T6nVei9ljA$AaXUFaFT3Hva9pubTt5GVd1L4FSVlS4ocvRPkIHsyjE=',
  '$scrypt$ln=10,r=8,p=1$rtWaU8o5RygFQAihtLa2dg$INrNLCmIEXFFVYzvsDzJDgf5eu6Xl+TUvLSZBsCK038',
  '$P$9IQRaTwmfeRo7ud9Fh4E2PdI0S3r.L0',
  '$wp$2y$05$GKOVy1/Py7g2Sfisf1gwoee8o8AT3PiT2cQ7PYiC1eISlwFB5znr2',
  '$ssha$after$fEegGg$jiodV+ssar3cHrWwWfLZUiUZ56I'
]

t.test('a decoy has the form of a hash, takes the same work, and nothing of the hash', async (t) => {
  for (const hash of HASHES) {
    const { form, work, scheme } = readHash(hash)
    for (let round = 0; round < 20; round++) {
      const decoy = makeDecoy(form)
      t.match(readHash(decoy), { form, work, scheme }, hash)
      for (const part of hash.split('$').filter((part) => part.length >= 20 && !part.includes(','))) t.notMatch(decoy, part)
    }
  }
  const own = readOwnHash('abcdefgh$2b$12$gf4IYRMe1fpobadzhBQuVeKG3WfQTr8gRT26PJaWqBF1VHoccHkMi')!
  t.match(makeDecoy(own.form), /^.{8}\$2b\$12\$.{53}$/)
})

await forEachEngine(t, { collections: COLLECTIONS }, async (t, store) => {
  const key = createSecretKey(Buffer.alloc(32, 1))
  let time = 0
  const open = () => createDecoys({ store, now: () => time, getKey: () => key, onError: (error) => { throw error } })
  const decoys = open()
  const users = store.collection<UserRecord>('users')
  t.equal(await decoys.choose('somebody'), undefined, 'without an import a hash of our own')
  const forms = await Promise.all([HASHES[1]!, HASHES[2]!].map(async (hash) => await decoys.register(readHash(hash).form)))
  let count = 0
  const add = async (number: number, form?: string) => {
    await users.insertMany(Array.from({ length: number }, () => createUserRecord(0, {
      id: `u${++count}`, account: `u${count}`, roles: {}, name: '', info: {}, ...(form !== undefined && { password_scheme: form })
    })))
  }
  await add(50)
  await add(30, forms[0])
  await add(20, forms[1])
  t.equal(await decoys.choose('somebody'), undefined, 'the shares are kept for a while')
  time += 10 * 60_000
  const accounts = Array.from({ length: 2_000 }, (_value, index) => `unknown${index}@example.com`)
  const fresh = open()
  const drawn = await Promise.all(accounts.map(async (account) => await fresh.choose(account)))
  const share = (form: string | undefined) => drawn.filter((decoy) => (decoy && readHash(decoy).form) === form).length / accounts.length
  t.ok(Math.abs(share(undefined) - 0.5) < 0.05, `our own: ${share(undefined)}`)
  t.ok(Math.abs(share(forms[0]) - 0.3) < 0.05, `argon2: ${share(forms[0])}`)
  t.ok(Math.abs(share(forms[1]) - 0.2) < 0.05, `pbkdf2: ${share(forms[1])}`)
  const other = open()
  const again = await Promise.all(accounts.map(async (account) => await other.choose(account)))
  t.strictSame(again.map((decoy) => decoy && readHash(decoy).form), drawn.map((decoy) => decoy && readHash(decoy).form), 'the same for the same account, in each process')

  const slow = accounts[drawn.findIndex((decoy) => decoy !== undefined)]!
  await waitUntil('the new shares are read', async () => await decoys.choose(slow))

  for (let index = 0; index < 30; index++) await decoys.register(`$2b$${String(4 + index % 10).padStart(2, '0')}$~5${index}`)
  t.equal(((await store.collection<{ id: string, forms: string[] }>('meta').get('password_schemes'))!.forms).length, 16, 'the number of forms is bounded')
})

t.test('a refusal by a cheap hash takes as much work as by one of our own', async (t) => {
  const { default: run } = await import('../../../lib/users/password-worker.ts')
  const measure = async (job: Parameters<typeof run>[0]): Promise<number> => {
    const before = process.threadCpuUsage()
    t.equal(run(job), false)
    const { user, system } = process.threadCpuUsage()
    return user + system - before.user - before.system
  }
  const own: number[] = []
  const cheap: number[] = []
  for (let round = 0; round < 9; round++) {
    own.push(await measure({ digest: 'wrong', hash: '$2b$09$gf4IYRMe1fpobadzhBQuVeKG3WfQTr8gRT26PJaWqBF1VHoccHkMi', cost: 9 }))
    cheap.push(await measure({ foreign: HASHES[6]!, password: 'wrong', cost: 9 }))
  }
  const median = (list: number[]) => list.toSorted((one, other) => one - other)[4]!
  // Without the work that makes up for the difference it is about a hundredth.
  t.ok(median(cheap) > 0.5 * median(own) && median(cheap) < 2 * median(own), `${median(cheap)} and ${median(own)} microseconds`)
})

await forEachEngine(t, { collections: COLLECTIONS }, async (t, store) => {
  const { register } = createDecoys({ store, now: () => 0, getKey: () => createSecretKey(Buffer.alloc(32, 1)), onError: (error) => { throw error } })
  const own = (cost: number) => readOwnHash(`abcdefgh$2b$${cost}$gf4IYRMe1fpobadzhBQuVeKG3WfQTr8gRT26PJaWqBF1VHoccHkMi`)!.form
  const cheap = readHash(HASHES[6]!).form
  await register(own(14))
  for (let index = 0; index < 15; index++) await register(`$pbkdf2-sha256$${index + 1}00$~10$~43`)
  t.match(await register(cheap), /^\$pbkdf2/, 'a cheap hash counts as another cheap one, and not as an expensive one of our own')
  t.equal(await register(own(13)), own(14), 'and one of our own as the one of the most similar cost')
})

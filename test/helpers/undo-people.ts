import type { UserRecord } from '../../lib/records/user.ts'
import type { Proof } from '../../lib/proofs.ts'
import { type WayKind, toWayKey } from '../../lib/way.ts'
import type { NewIdentity } from '../../lib/accounts/identities.ts'
import type { TestKit } from '../../testing/index.ts'
import { WayError } from '../../lib/ways/way-error.ts'
import { proveApp } from './factors.ts'
import { unique } from './people.ts'

const AT = '2126-01-01T00:00:00.000Z'

/** The password that the thief knows. */
export const STOLEN = 'the stolen password'

/** Somebody who acts on an account: its owner, or a thief. */
export interface Role {
  /** Their ways, by the id. */
  ways: Map<string, WayKind>
  passwords: Set<string>
  mailboxes: Set<string>
  /** What was mailed to them. */
  undos: string[]
  resets: string[]
}

/** An account with an owner and a thief, who act with what each of them has. */
export async function createVictim (kit: TestKit, { password = true } = {}) {
  const { accounts, users, factors, store, ways } = kit.app.identity
  const records = store.collection<UserRecord>('users')
  const address = `${unique('ann')}@example.com`
  const { user_id } = await users.create({ data: { account: address, password: STOLEN } }, { verified: true })
  const toRole = (mailbox: string): Role => ({ ways: new Map(), passwords: new Set(), mailboxes: new Set([mailbox]), undos: [], resets: [] })
  const [owner, thief] = [toRole(address), toRole(`${unique('thief')}@evil.example`)]
  owner.passwords.add(STOLEN)
  if (password) thief.passwords.add(STOLEN)

  const read = async () => (await records.get(user_id))!

  /** Hands out what was mailed. */
  async function collect (): Promise<void> {
    for (const { to, link, token } of await kit.mails.all()) {
      const role = [owner, thief].find(({ mailboxes }) => mailboxes.has(to))
      if (role === undefined || link === undefined || token === undefined) continue
      if (link.includes('/undo?')) role.undos.push(token)
      if (link.includes('/reset?')) role.resets.push(token)
    }
  }

  /** What was compared already. */
  const compared = new Map<string, boolean>()

  async function verify (role: Role): Promise<boolean> {
    const { account, password: hash = '' } = await read()
    for (const one of role.passwords) {
      const pair = JSON.stringify([hash, one])
      if (!compared.has(pair)) compared.set(pair, await users.verify(account, one) !== null)
      if (compared.get(pair) === true) return true
    }
    return false
  }

  /** What somebody can prove; null for who has no way in. With a factor on the account both kinds are asked. */
  async function prove (role: Role): Promise<Proof[] | null> {
    const record = await read()
    const own = Object.entries(record.ways ?? {}).filter(([id]) => role.ways.has(id))
    const first: Proof[] = await verify(role) ? [{ way: 'password', kind: 'password', at: AT }] : []
    const proofs = own.filter(([, { kind }]) => kind !== 'recovery').map(([way, { kind }]): Proof => ({ way, kind, at: AT, ...(kind === 'passkey' && { uv: true }) }))
    const all = [...first, ...proofs]
    const isIn = all.some(({ kind }) => kind !== 'totp')
    const hasFactor = await ways.hasFactor(record)
    return isIn && (!hasFactor || all.some(({ kind }) => kind === 'totp' || kind === 'passkey')) ? all : null
  }

  async function toActor (role: Role) {
    // Of before the proof, as a sign-in has it.
    const { epoch } = await read()
    const proofs = await prove(role)
    return proofs && { user_id, epoch, proofs }
  }

  const toIdentity = (): NewIdentity => {
    const subject = unique('subject')
    return { kind: 'upstream', upstream: 'corp', key: toWayKey('upstream', 'https://corp.example', subject), material: { issuer: 'https://corp.example', subject } }
  }

  /** Remembers whose the ways are that an act has added. */
  async function own (role: Role, act: () => Promise<unknown>): Promise<void> {
    const before = Object.keys((await read()).ways ?? {})
    await act()
    for (const [id, { kind }] of Object.entries((await read()).ways ?? {})) if (!before.includes(id)) role.ways.set(id, kind)
    await collect()
  }

  const acts = {
    async identity (role: Role): Promise<void> {
      const actor = await toActor(role)
      if (actor !== null) await own(role, async () => await accounts.linkIdentity(actor, toIdentity(), 'Corp'))
    },
    async factor (role: Role): Promise<void> {
      const actor = await toActor(role)
      if (actor === null) return
      await own(role, async () => {
        const { id } = await factors.beginTotp(actor, address)
        await proveApp(ways, user_id, id)
        const hasCodes = Object.values((await read()).ways ?? {}).some(({ kind }) => kind === 'recovery')
        await factors.addFactor(actor, hasCodes ? [id] : [id, (await factors.prepareCodes(actor)).id])
      })
    },
    async passkey (role: Role): Promise<void> {
      const actor = await toActor(role)
      if (actor === null) return
      const key = unique('passkey')
      await own(role, async () => {
        const [id] = await ways.prepare(actor, [{ kind: 'passkey', uv: true, key: toWayKey('passkey', key), material: { credential_id: key } }])
        await factors.addFactor(actor, [id!])
      })
    },
    async codes (role: Role): Promise<void> {
      const actor = await toActor(role)
      if (actor === null || !await ways.hasFactor(await read())) return
      await own(role, async () => await factors.renewCodes(actor, (await factors.prepareCodes(actor)).id))
    },
    /** The address becomes one of theirs. */
    async address (role: Role): Promise<void> {
      const [mailbox = ''] = role.mailboxes
      if (await prove(role) === null || (await read()).email === mailbox) return
      await accounts.changeAddress(user_id, mailbox)
      const { token } = await kit.mails.next({ to: mailbox })
      await own(role, async () => await accounts.verifyAddress(token!, user_id))
    },
    /** Removes a way that somebody else has added, unless it is the last one. */
    async remove (role: Role): Promise<void> {
      const actor = await toActor(role)
      const [id, way] = Object.entries((await read()).ways ?? {}).find(([one, { kind }]) => !role.ways.has(one) && kind !== 'recovery') ?? []
      if (actor === null || id === undefined) return
      await (way?.kind === 'upstream' ? accounts.unlinkIdentity(actor, id) : factors.removeFactor(actor, id)).catch((error: unknown) => {
        if (!(error instanceof WayError)) throw error
      })
      await collect()
    },
    async password (role: Role): Promise<void> {
      if (await prove(role) === null) return
      const chosen = unique('a chosen password')
      await own(role, async () => await users.patchOwn(user_id, { data: { password: chosen } }))
      role.passwords.add(chosen)
    },
    /** Forgotten: whoever reads the mailbox of the account sets a password. */
    async forgot (role: Role): Promise<void> {
      const { email = '' } = await read()
      if (!role.mailboxes.has(email)) return
      await accounts.forgotPassword(email, { ip: '192.0.2.7' })
      await collect()
      await acts.reset(role)
    },
    /** Uses what was mailed last for a new password. */
    async reset (role: Role): Promise<boolean> {
      const token = role.resets.pop()
      if (token === undefined) return false
      const chosen = unique('a new password')
      const isSet = await accounts.setPassword(token, chosen).then(() => true, () => false)
      if (isSet) role.passwords.add(chosen)
      await collect()
      return isSet
    },
    /** Uses a link that undoes. @returns whether it was good */
    async undo (role: Role, token: string | undefined = role.undos.at(-1)): Promise<boolean> {
      if (token === undefined) return false
      const isUsed = await accounts.undo(token).then(() => true, () => false)
      await collect()
      return isUsed
    }
  }

  return {
    user_id,
    address,
    owner,
    thief,
    read,
    collect,
    acts,
    prove,

    /**
     * The ways in that the thief has: also by what was mailed to them.
     * @param kept ids of ways that were left to them
     */
    async listWaysOfThief (kept: readonly string[] = []): Promise<string[]> {
      const record = await read()
      const left = Object.keys(record.ways ?? {}).filter((id) => thief.ways.has(id) && !kept.includes(id)).map((id) => thief.ways.get(id)!)
      const mailbox = thief.mailboxes.has(record.email ?? '') ? ['address'] : []
      const known = await verify(thief) ? ['password'] : []
      const used: string[] = []
      for (const token of thief.resets) if (await accounts.setPassword(token, unique('of the thief')).then(() => true, () => false)) used.push('reset')
      for (const token of thief.undos) if (await accounts.inspectUndo(token).then(() => true, () => false)) used.push('undo')
      return [...left, ...mailbox, ...known, ...used]
    }
  }
}

export type Victim = Awaited<ReturnType<typeof createVictim>>

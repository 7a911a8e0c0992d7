import { type IdentityError, paramError } from '../errors.ts'
import type { Proof } from '../proofs.ts'
import type { UserRecord } from '../records/user.ts'
import type { Store } from '../store/port.ts'
import { userNotFound } from '../user-changes/user-changes.ts'
import type { Factors } from './factors.ts'
import { WayError } from './way-error.ts'
import type { WayActor, WayService } from './ways.ts'
import { isFactor } from './words.ts'

/** The kinds of factors that people can add by themselves. */
export type FactorKind = 'totp' | 'passkey'

/** Where an enrolment is: the ids of the material of the factor, and of the recovery codes that come with it. */
export type Enrolling = {
  /** `recovery`: only codes, for somebody whose factors an import has brought. Then `way` is their id. */
  kind: FactorKind | 'recovery'
  way: string
  /** Absent until the person is shown the codes. */
  codes?: string
}

/** What the page of an enrolment shows. `app`: the seed, until the first right code. `codes`: the recovery codes, only once. */
export type EnrolmentView =
  | { at: 'app', id: string, seed: string, uri: string, proved: boolean }
  | { at: 'codes', codes: string[], account: string }

/** The result of a form: the next page, or a factor that counts from now on. */
export type EnrolmentResult =
  | { enrolling: Enrolling, view: Extract<EnrolmentView, { at: 'codes' }> }
  | { added: UserRecord, proof: Proof, withCodes: boolean }

/** What a form of an enrolment brings. */
export interface EnrolmentForm {
  code?: string
  /** Whether the person confirms that they kept the codes. */
  kept?: boolean
}

const over = (): WayError => new WayError('unknown')

/**
 * Adds factors, page by page: on the account pages, and within a sign-in that demands one. A factor is first proved. The first one is named
 * only after the person has confirmed that they kept the recovery codes, in one write with these.
 * @param addFactor names what was proved, and tells the user
 */
export function createEnrolments <Actor extends WayActor> ({ store, ways, factors, addFactor }: {
  store: Store
  ways: Pick<WayService, 'findPrepared' | 'get' | 'list'>
  factors: Pick<Factors, 'beginTotp' | 'findBegun' | 'proveTotp' | 'prepareCodes'>
  addFactor: (actor: Actor, ids: readonly string[]) => Promise<UserRecord>
}) {
  const users = store.collection<UserRecord>('users')

  async function requireUser ({ user_id }: Actor): Promise<UserRecord> {
    const user = await users.get(user_id)
    if (user === null) throw userNotFound()
    return user
  }

  async function find (actor: Actor, { way }: Pick<Enrolling, 'way'>): Promise<Extract<EnrolmentView, { at: 'app' }> | null> {
    const begun = await factors.findBegun(actor, way, (await requireUser(actor)).account)
    return begun && { at: 'app', ...begun }
  }

  async function finish (actor: Actor, { way, codes }: Omit<Enrolling, 'kind'>): Promise<EnrolmentResult> {
    const prepared = await ways.findPrepared(actor, way)
    if (prepared === null || !isFactor(prepared.way)) throw over()
    const added = await addFactor(actor, codes === undefined ? [way] : [way, codes])
    const held = await ways.get(added, way)
    if (held === null) throw over()
    const { kind, uv } = held.way
    return { added, proof: { way, kind, ...(uv !== undefined && { uv }), at: held.credential.last_used_at ?? held.way.at }, withCodes: codes !== undefined }
  }

  /** Requires that a factor was proved: a passkey was when it was made. */
  async function prove (actor: Actor, { way }: Enrolling, code: string): Promise<void> {
    if ((await ways.findPrepared(actor, way))?.way.kind === 'passkey') return
    const begun = await find(actor, { way })
    if (begun === null) throw over()
    if (!begun.proved && !await factors.proveTotp(actor, way, code)) throw wrongCode()
  }

  return {
    /** @throws WayError `off`, ErrUnknown, ErrLimit */
    async begin (actor: Actor, kind: 'totp', name?: string): Promise<Enrolling> {
      const { id } = await factors.beginTotp(actor, (await requireUser(actor)).account, name)
      return { kind, way: id }
    },

    /** What the page of an enrolment shows when it is opened again. Codes are shown once: it leads to others. Null when it is over. */
    find,

    /**
     * Goes on with an enrolment.
     * @throws ErrParam `code`, WayError `unknown` when it is over, ErrUnknown when the session has ended or has proved too little, ErrLimit
     */
    async submit (actor: Actor, enrolling: Enrolling, { code = '', kept = false }: EnrolmentForm): Promise<EnrolmentResult> {
      const { way, codes } = enrolling
      if (codes !== undefined && kept) {
        if ((await ways.findPrepared(actor, codes))?.way.kind !== 'recovery') throw over()
        return await finish(actor, enrolling)
      }
      await prove(actor, enrolling, code)
      const user = await requireUser(actor)
      const held = await ways.list(user)
      if (held.some(({ way: { kind } }) => kind === 'recovery')) return await finish(actor, { way })
      const made = await factors.prepareCodes(actor)
      return { enrolling: { ...enrolling, codes: made.id }, view: { at: 'codes', codes: made.codes, account: user.account } }
    }
  }
}

const wrongCode = (): IdentityError => paramError('code', 'is wrong')

export type Enrolments<Actor extends WayActor> = ReturnType<typeof createEnrolments<Actor>>

import { defined } from '../defined.ts'
import type { NoticeKind, Notices } from '../notice.ts'
import { type Proof, reaches, toStrength } from '../proofs.ts'
import { type UserRecord, listPresent } from '../records/user.ts'
import { type Tickets, ticketError } from '../tickets/tickets.ts'
import { UNDO_HOURS, type Undos, listProving } from '../user-changes/undos.ts'
import type { UserChanges } from '../user-changes/user-changes.ts'
import { findWay } from '../way.ts'
import type { FactorKind } from './enrolments.ts'
import { stepUpError } from './step-up.ts'
import { WayError } from './way-error.ts'
import type { WayActor, WayService } from './ways.ts'
import { isFactor } from './words.ts'

/**
 * What a session has proved, for a change of the factors that it asks for. `link` names the enrolment whose link the browser carries, if an
 * administrator has reset the factors of the user.
 */
export type FactorActor = WayActor & { proofs: readonly Proof[], link?: string | undefined }

export interface FactorChangesParts {
  ways: Pick<WayService, 'findPrepared' | 'name' | 'remove' | 'hasFactor' | 'demandsFactor'>
  changes: Pick<UserChanges, 'requireUser'>
  tickets: Pick<Tickets, 'requireNamed' | 'removeOf'>
  notices: Notices
  undos: Undos
  /** The hours for which a first factor can be undone by mail; 0: never. */
  undoHours?: number | undefined
  /** Receives failures that no caller waits for. */
  onError: (error: unknown) => void
}

/** @throws ErrTicket when the user adds a factor only with a link, and has not come by it */
function checkEnrolment (ways: Pick<WayService, 'demandsFactor'>, record: UserRecord, link: string | undefined): void {
  const { enrol_ticket } = record
  if (enrol_ticket !== undefined && enrol_ticket !== link && ways.demandsFactor(record)) throw ticketError()
}

/** Changes of second factors. A mail tells the person of each. */
export function createFactorChanges ({ ways, changes, tickets, notices, undos, undoHours = UNDO_HOURS, onError }: FactorChangesParts) {
  /** @throws ErrUnknown when the session has proved less than a person with a factor must: it was begun before the factor was added */
  function checkProofs ({ proofs }: FactorActor): void {
    if (proofs.length === 0 || !reaches(toStrength(proofs), 'mfa')) throw stepUpError({ acr: 'mfa' })
  }

  /** Writes what can be undone, and the mail: after a proof of an earlier factor nothing more can be than before. */
  async function write (
    { proofs }: FactorActor,
    record: UserRecord,
    added: readonly string[],
    act: Parameters<Undos['write']>[1] & { plain: NoticeKind },
    isFirst = false
  ) {
    const proving = isFirst ? [] : listProving(record, proofs)
    return proving.length === 0
      ? await undos.write(record, { ...act, added, hours: undoHours })
      : { ...undos.follow(record, added, proving), notices: await notices.write(act.plain, record) }
  }

  return {
    /**
     * Names a factor that has been proved, with the recovery codes that come with the first one. Whoever knows the password alone could add
     * the first factor, so its mail has a link that undoes that. One that was added after a proof of an earlier one has none: a mailbox alone
     * never removes an established factor.
     * @param ids of a factor, and of prepared codes
     * @throws WayError, ErrUnknown when the session has ended or has proved too little, ErrTicket without the link that is needed, ErrLimit
     */
    async addFactor (actor: FactorActor, ids: readonly string[]): Promise<UserRecord> {
      const { user_id, link } = actor
      if (link !== undefined) await tickets.requireNamed(user_id, 'enrol', link)
      const isPasskey = (await ways.findPrepared(actor, ids[0] ?? ''))?.way.kind === 'passkey'
      const kind = isPasskey ? 'passkey' : 'factor'
      const method = defined({ kind: isPasskey ? 'passkey' as const : 'totp' as const, id: ids[0] })
      const written = await ways.name(actor, ids, async (record) => {
        const isFirst = !await ways.hasFactor(record)
        if (isFirst) checkEnrolment(ways, record, link)
        else checkProofs(actor)
        const { set, unset, notices } = await write(actor, record, ids, {
          kind, mail: `first-${kind}-added`, plain: `${kind}-added`, isAsked: link === undefined
        }, isFirst)
        return { happened: [{ type: 'factor.added', id: user_id, method }], notices, also: { set, unset: [...unset, ...listPresent(record, 'enrol_ticket')] } }
      })
      if (link !== undefined) await tickets.removeOf(user_id, ['enrol']).catch(onError)
      return written
    },

    /**
     * Replaces the recovery codes.
     * @throws WayError, ErrUnknown, ErrLimit
     */
    async renewCodes (actor: FactorActor, id: string): Promise<UserRecord> {
      return await ways.name(actor, [id], async (record) => {
        if (!await ways.hasFactor(record)) throw new WayError('unknown')
        checkProofs(actor)
        const { notices, ...also } = await write(actor, record, [id], { kind: 'codes', mail: 'codes-made', plain: 'codes-renewed', isAsked: true })
        return { happened: [{ type: 'recovery.renewed', id: actor.user_id, method: { kind: 'recovery', id } }], notices, also }
      })
    },

    /**
     * Removes a factor of a user. The recovery codes go with the last one.
     * @param isEnd whether all sessions end
     * @returns its kind, and the epoch for a sign-in that follows
     * @throws WayError `last` unless a way in remains, ErrUnknown when the session that asks has ended
     */
    async removeFactor (actor: WayActor, id: string, { isEnd = true }: { isEnd?: boolean } = {}): Promise<{ kind: FactorKind, epoch: number }> {
      const user = await changes.requireUser(actor.user_id)
      const way = findWay(user, id)
      if (way === undefined || !isFactor(way)) throw new WayError('unknown')
      const kind = way.kind === 'passkey' ? 'passkey' : 'totp'
      const mail = kind === 'passkey' ? 'passkey-removed' : 'factor-removed'
      const { epoch } = await ways.remove(actor, id, {
        isEnd,
        toRecorded: async (record) => ({
          happened: [{ type: 'factor.removed', id: user.id, method: { kind, id } }], notices: await notices.write(mail, record)
        })
      })
      return { kind, epoch }
    }
  }
}

export type FactorChanges = ReturnType<typeof createFactorChanges>

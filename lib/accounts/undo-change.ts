import type { Decision } from '../change-record.ts'
import { defined } from '../defined.ts'
import type { Happening } from '../events/types.ts'
import { generateId } from '../ids.ts'
import { type Notice, toResetMailbox } from '../notice.ts'
import { type UserChange, type UserFields, type UserRecord, applyChange, findMailbox, listAddresses, listPresent } from '../records/user.ts'
import { type AddressProof, restoreProof } from '../user-changes/address-proof.ts'
import { isTaken } from '../users/addresses.ts'
import { NO_PASSWORD } from '../users/passwords.ts'
import { type Undo, toUndoFields } from '../user-changes/undos.ts'
import { type Way, findWay } from '../way.ts'
import { showIdentity } from '../ways/identity.ts'
import { isFactor } from '../ways/words.ts'
import type { AccountContext } from './context.ts'
import { keepWays } from './keep-ways.ts'
import { type Judged, listAdded } from './undo-list.ts'

/** Whether the account has another mailbox than before the act. */
export const isMoved = (record: UserRecord, { mailbox }: Undo): boolean => findMailbox(record) !== mailbox

const isIdentity = ([, { kind }]: readonly [id: string, way: Way]): boolean => kind === 'upstream'

/** The events of an undo, from the ways that go. One ends sessions only, where nothing else happens. */
function listHappened (record: UserRecord, own: Undo, lost: readonly (readonly [id: string, way: Way])[]): [Happening, ...Happening[]] {
  const { id } = record
  const [identities, factors] = [lost.filter(isIdentity), lost.filter((way) => !isIdentity(way))]
  const happened: Happening[] = identities.map(([, way]) => ({ type: 'identity.unlinked', id, via: showIdentity(way) }))
  if (factors.length > 0) happened.push({ type: 'factor.undone', id, methods: factors.map(([of, { kind }]) => ({ kind, id: of })) })
  if (isMoved(record, own)) happened.push({ type: 'user.email_restored', id })
  const [first = { type: 'user.sessions_ended', id }, ...others] = happened
  return [first, ...others]
}

/** Decides what the use of a link that undoes something writes. */
export function createUndoChange ({ users, ways, notices, now, writeLink, findOnly }: AccountContext) {
  /**
   * The fields with an address as it was. An upstream that claims the user by the present one goes on claiming them: otherwise an undo would
   * lead out of its rule.
   */
  function restoreAddress (record: UserRecord, before: AddressProof): UserFields {
    const { account, roles } = record
    const { email } = before
    const { set, unset } = restoreProof(before)
    const only = findOnly?.(record)?.id
    const isLeft = only !== undefined && findOnly?.({ account, roles, email })?.id !== only
    return { set: defined({ ...set, addresses: listAddresses(account, email), held_by: isLeft ? only : undefined }), unset }
  }

  /** The address to restore, where another account has it by now. */
  async function findTaken (record: UserRecord, own: Undo): Promise<string | undefined> {
    const { email } = own.before
    return isMoved(record, own) && email !== undefined && await isTaken(users, email, record.id) ? email : undefined
  }

  /** Where factors went, none is left and one is demanded, the next one needs a link, as after a reset by an administrator. */
  async function demandEnrolment (
    record: UserRecord, made: UserRecord, to: string | undefined
  ): Promise<Required<Pick<UserChange, 'set' | 'unset'>> & { notices: Notice[] }> {
    const none = { set: {}, unset: listPresent(record, 'enrol_ticket'), notices: [] }
    const hadOne = record.enrol_ticket !== undefined || Object.values(record.ways ?? {}).some(isFactor)
    if (writeLink === undefined || !hadOne || await ways.hasFactor(made) || !ways.demandsFactor(made)) return none
    const id = generateId(now())
    const mails = await notices.write('undone-enrol', made, { to, of: id })
    return mails.length === 0 ? none : { set: { enrol_ticket: id }, unset: [], notices: mails }
  }

  return {
    findTaken,

    /**
     * What the use of a link writes, and the ways that go.
     * @param isFree false once a write has shown that somebody else has the address from before
     */
    async decide ({ record, list, index, own }: Judged, isFree: boolean): Promise<{ removed: string[], change: Decision<UserRecord> }> {
      const gone = listAdded(list)
      const kept = keepWays(record, Object.keys(record.ways ?? {}).filter((id) => !gone.includes(id)))
      const isAvailable = isFree && await findTaken(record, own) === undefined
      const address = isMoved(record, own) ? restoreAddress(record, isAvailable ? own.before : {}) : { set: {}, unset: [] }
      // The earliest mailbox has the last word: what another one may still undo ends with its undo, and never the other way round.
      const isEarliest = list[0]?.mailbox === own.mailbox
      const undos = toUndoFields(record, isEarliest ? [] : list.slice(0, index))
      const lost = kept.removed.flatMap((id) => {
        const way = findWay(record, id)
        return way === undefined ? [] : [[id, way] as const]
      })
      const link_undone = lost.some(isIdentity) ? true : undefined
      const fields = {
        set: defined({ ...kept.set, ...address.set, ...undos.set, password: NO_PASSWORD, link_undone }),
        unset: [...kept.unset, ...address.unset, ...undos.unset]
      }
      const made = applyChange(record, fields)
      const to = own.mailbox
      const enrolment = await demandEnrolment(record, made, to)
      const mailbox = findMailbox(record)
      return {
        removed: kept.removed,
        change: {
          set: { ...fields.set, ...enrolment.set },
          unset: [...fields.unset, ...enrolment.unset],
          increment: { epoch: 1 },
          happened: listHappened(record, own, lost),
          notices: [
            ...await notices.write('undone', made, { ...toResetMailbox(to, findMailbox(made)), epoch: record.epoch + 1 }),
            ...enrolment.notices,
            ...(mailbox === undefined || mailbox === to ? [] : await notices.write('address-taken-back', record, { to: mailbox }))
          ]
        }
      }
    }
  }
}

import { toTimestamp } from '../clock.ts'
import { generateId } from '../ids.ts'
import type { UserRecord } from '../records.ts'
import type { PreparedReset } from '../ways/held-factors.ts'
import type { AccountContext } from './context.ts'
import type { FactorMails } from './factor-mails.ts'
import { PURPOSES, findNamed, ticketError } from './tickets.ts'

/**
 * The link with which a user adds a factor after an administrator has reset theirs, while one is demanded: otherwise, whoever knows the
 * password could add the next one. The user's record names the enrolment, until a factor is added.
 */
export function createEnrolLinks ({ users, tickets, ways, outbox, writeLink, now }: AccountContext, { toJob, tell }: FactorMails) {
  return {
    /**
     * Prepares the link and the mail of a reset. The mail is stored before the reset and sent after it.
     * @throws ErrBusy when the mail cannot be stored: then nothing is reset
     */
    async prepareReset (user: UserRecord): Promise<PreparedReset> {
      const tellOf = async (removed: number) => removed > 0 ? await tell('factor-reset', user.id) : undefined
      if (writeLink === undefined || !ways.mayDemand) {
        return {
          async finish (_isLinked, removed) {
            await tellOf(removed)
            return {}
          }
        }
      }
      const id = generateId(now())
      const job = outbox && toJob('factor-reset', user, { of: id, until: toTimestamp(now() + PURPOSES.enrol.life) })
      const notice = job && await outbox?.enqueue(job, PURPOSES.enrol.life, { waits: true })
      return {
        id,
        async finish (isLinked, removed) {
          notice?.release()
          if (isLinked && job !== undefined) return { sent: true }
          if (isLinked) return { sent: false, link: writeLink('enrol', await tickets.issue({ purpose: 'enrol', user_id: user.id, of: id, mailed: false })) }
          await tellOf(removed)
          return {}
        }
      }
    },

    /**
     * Reads the link, without spending it.
     * @returns the enrolment, as the user's record names it
     * @throws ErrTicket
     */
    async inspectEnrolLink (token: string): Promise<{ enrolment: string, user_id: string }> {
      const ticket = await tickets.require(token, 'enrol')
      const { user_id = '' } = ticket
      const enrolment = findNamed(ticket)
      if ((await users.get(user_id))?.enrol_ticket !== enrolment) throw ticketError()
      return { enrolment, user_id }
    },

    /** @throws ErrTicket when the user adds a factor only with the link, and has not come by it */
    checkLink (record: UserRecord, link: string | undefined): void {
      const { enrol_ticket } = record
      if (enrol_ticket !== undefined && enrol_ticket !== link && ways.demandsFactor(record)) throw ticketError()
    }
  }
}

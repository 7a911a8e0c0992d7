import { createToken, hashToken } from '../crypto/random-token.ts'
import type { UserRecord } from '../records.ts'
import type { PreparedReset } from '../ways/held-factors.ts'
import type { AccountContext } from './context.ts'
import type { FactorMails } from './factor-mails.ts'
import { PURPOSES, type TicketRecord, ticketError } from './tickets.ts'

/**
 * The link with which a user adds a factor after an administrator has reset theirs, while one is demanded: otherwise, whoever knows the
 * password could add the next one. The user's record names its ticket, until a factor is added.
 */
export function createEnrolLinks ({ users, tickets, ways, outbox, writeLink, onError }: AccountContext, { toJob, tell }: FactorMails) {
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
      const token = createToken()
      const ticket = hashToken(token)
      const job = outbox && toJob('factor-reset', user, { token })
      await tickets.issue({ purpose: 'enrol', user_id: user.id, mailed: job !== undefined }, token)
      const notice = job && await outbox?.enqueue(job, PURPOSES.enrol.life, { waits: true })
      return {
        ticket,
        async finish (isLinked, removed) {
          notice?.release()
          if (isLinked) return job === undefined ? { sent: false, link: writeLink('enrol', token) } : { sent: true }
          await tickets.remove(ticket).catch(onError)
          await tellOf(removed)
          return {}
        }
      }
    },

    /**
     * Reads the link, without spending it.
     * @throws ErrTicket
     */
    async inspectEnrolLink (token: string): Promise<{ ticket: string, user_id: string }> {
      const { id: ticket, user_id = '' } = await tickets.require(token, 'enrol')
      if ((await users.get(user_id))?.enrol_ticket !== ticket) throw ticketError()
      return { ticket, user_id }
    },

    /** The ticket of the link that a browser carries. @throws ErrTicket */
    requireTicket: async (ticket: string): Promise<TicketRecord> => await tickets.require({ ticket }, 'enrol'),

    /** @throws ErrTicket when the user adds a factor only with the link, and has not come by it */
    checkLink (record: UserRecord, link: string | undefined): void {
      const { enrol_ticket } = record
      if (enrol_ticket !== undefined && enrol_ticket !== link && ways.demandsFactor(record)) throw ticketError()
    }
  }
}

import type { AccountContext } from './context.ts'
import { findNamed, ticketError } from '../tickets/tickets.ts'

/**
 * The link with which a user adds a factor after an administrator has reset theirs, while one is demanded: otherwise, whoever knows the
 * password could add the next one. The user's record names the enrolment, until a factor is added.
 */
export function createEnrolLinks ({ users, tickets, ways, writeLink }: AccountContext) {
  return {
    /** Issues the link, for an operator who hands it over. Absent where nobody needs one, or there are no pages. */
    issueEnrolLink: writeLink === undefined || !ways.mayDemand
      ? undefined
      : async (user_id: string, enrolment: string): Promise<string> => (
        writeLink('enrol', await tickets.issue({ purpose: 'enrol', user_id, of: enrolment, mailed: false }))),

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
    }
  }
}

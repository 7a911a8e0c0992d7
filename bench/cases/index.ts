import type { Case } from '../bench.ts'
import assertions from './assertions.ts'
import create from './create.ts'
import disturbed from './disturbed.ts'
import { former, formerStart } from './former.ts'
import introspection from './introspection.ts'
import issue from './issue.ts'
import lists from './lists.ts'
import login from './login.ts'
import mongodb from './mongodb.ts'
import pages from './pages.ts'
import receivers from './receivers.ts'
import start from './start.ts'
import tokeninfo from './tokeninfo.ts'
import tokens from './tokens.ts'
import users from './users.ts'

/** In the order of the report. */
export const CASES: Case[] = [tokeninfo, introspection, mongodb, tokens, disturbed, issue, assertions, login, receivers, users, pages, lists, create, start, former, formerStart]

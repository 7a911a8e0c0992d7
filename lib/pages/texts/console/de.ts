import { consoleEn } from './en.ts'

export const consoleDe = consoleEn
